// Fills the list of versions in the sidebar, and says so on pages that are not of the newest release.
(() => {
  const site = window.bestkVersions; // from versions.js above the folders of all versions
  if (!site) return;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const page = location.pathname.slice(root.pathname.length) || "index.html";
  const folder = decodeURIComponent(root.pathname.split("/").at(-2));
  const own = site.versions.find((version) => version.folder === folder);
  if (!own) return;
  const newest = site.versions.find((version) => version.folder === site.newest);

  // The same page there, or the first page if there is none.
  const link = (version, text) => {
    const known = version.pages.includes(page);
    const anchor = document.createElement("a");
    anchor.href = new URL(`../${version.folder}/${known ? page : "index.html"}`, root);
    anchor.textContent = text;
    return anchor;
  };

  const menu = document.querySelector(".versions");
  for (const version of site.versions) {
    const kind =
      version === newest ? " (newest)" : version.folder === "dev" ? " (in development)" : "";
    const anchor = link(version, version.version + kind);
    if (version === own) anchor.setAttribute("aria-current", "true");
    const item = document.createElement("li");
    item.append(anchor);
    menu.querySelector("ul").append(item);
  }
  menu.hidden = false;

  if (!newest || own === newest) return;
  document.addEventListener("DOMContentLoaded", () => {
    const title = document.createElement("p");
    title.className = "admonition-title";
    title.textContent = own.folder === "dev" ? "Not released yet" : "An older version";
    const text = document.createElement("p");
    text.append(
      `This page is about bestk ${own.version}. The newest release is `,
      link(newest, newest.version),
      ".",
    );
    const note = document.createElement("aside");
    note.className = "admonition warning";
    note.append(title, text);
    document.querySelector("article").prepend(note);
  });
})();
