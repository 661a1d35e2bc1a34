"use strict";
// The explorer of near-optimal models. Models are numbered from the best on, so those within a
// tolerance are the first ones. Names are written as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const STEPS = 1000; // positions of the slider
  const BINS = 60; // bars above the slider
  const FEW = 24; // features, or groups, in "some" that are shown at first
  const PRINTED = 40; // models on paper
  const ANY = 0,
    REQUIRED = 1,
    FORBIDDEN = 2;
  const WORDS = ["any", "required", "forbidden"];
  const SIGNS = ["○", "✓", "✕"];

  // ---------------------------------------------------------------- data

  // What k counts: features, or groups of them. "Feature" below means either; "member" is a feature.
  const unit = data.unit,
    capital = unit[0].toUpperCase() + unit.slice(1);
  // Powers are raised as on other pages: s6² for s6^2 and s6**2.
  const POWER = /([\p{L}\p{N}_)\]])(?:\^|\s?\*\*\s?)(\d{1,2})(?![\p{L}\p{N}_]|\.\d)/gu;
  const raised = (digits) => digits.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  const readable = (name) =>
    name.trim() === ""
      ? JSON.stringify(name)
      : name.replace(POWER, (_, before, power) => before + raised(power));
  const names = data.names.map(readable);
  const p = names.length;
  const n = data.sizes.length;
  const objectives = Float64Array.from(data.objectives);
  const features = Int32Array.from(data.features);
  const starts = new Int32Array(n + 1);
  for (let i = 0; i < n; i++) starts[i + 1] = starts[i] + data.sizes[i];
  const free = new Set(data.free); // not counted in k
  const counted = Int32Array.from(data.sizes, (size, i) => {
    for (let a = starts[i]; a < starts[i + 1]; a++) if (free.has(features[a])) size--;
    return size;
  });
  // Coefficients belong to members: those of model i are numbered from termStarts[i] on.
  const members = data.members && { ...data.members, names: data.members.names.map(readable) };
  const memberOf = members ? Int32Array.from(members.features) : features;
  const memberNames = members ? members.names : names;
  const termStarts = members ? new Int32Array(n + 1) : starts;
  if (members) for (let i = 0; i < n; i++) termStarts[i + 1] = termStarts[i] + members.sizes[i];
  const hasRanges = data.lows !== null;
  const borderline = new Set(data.borderline);
  const words = Math.max(1, Math.ceil(n / 32));
  const bits = Array.from({ length: p }, () => new Uint32Array(words)); // models of each feature
  for (let i = 0; i < n; i++) {
    for (let a = starts[i]; a < starts[i + 1]; a++) bits[features[a]][i >> 5] |= 1 << (i & 31);
  }
  const has = (f, i) => (bits[f][i >> 5] >>> (i & 31)) & 1;
  const rowCount = data.rows ? data.rows.labels.length : 0;
  const low = (x) => (x === null ? -Infinity : x);
  const high = (x) => (x === null ? Infinity : x);
  const predicted = data.rows && {
    low: Float64Array.from(data.rows.low ?? data.rows.fitted, low),
    high: Float64Array.from(data.rows.high ?? data.rows.fitted, high),
  };
  // Whether what the list does not show is not near-optimal; models of k features alone do not say.
  const sure = data.complete && !data.onlyK;
  const given = new Set(data.include); // features that every model must have
  const hasIntercept = data.intercepts.some((value) => value !== 0);
  const span = data.threshold - data.best;
  const price = (i) => (objectives[i] - data.best) / data.scale;
  const totals = countFeatures(Int32Array.from({ length: n }, (_, i) => i));
  const byUse = Array.from({ length: p }, (_, f) => f).sort(
    (a, b) => totals[b] - totals[a] || a - b,
  );

  function countFeatures(models) {
    const counts = new Int32Array(p);
    for (const i of models) for (let a = starts[i]; a < starts[i + 1]; a++) counts[features[a]]++;
    return counts;
  }

  function popcount(x) {
    x -= (x >>> 1) & 0x55555555;
    x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
    return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }

  function countBoth(a, b, among) {
    let sum = 0;
    for (let w = 0; w < words; w++) sum += popcount(a[w] & b[w] & among[w]);
    return sum;
  }

  // ---------------------------------------------------------------- numbers and elements

  // x with so many digits, up (1), down (-1) or to the nearest (0).
  function rounded(x, digits, direction) {
    const near = Number(x.toPrecision(digits));
    if (direction === 0 || x === 0 || (near - x) * direction >= 0) return near;
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
    return Number((near + direction * unit).toPrecision(digits));
  }

  const RAISED = {
    "-": "⁻",
    0: "⁰",
    1: "¹",
    2: "²",
    3: "³",
    4: "⁴",
    5: "⁵",
    6: "⁶",
    7: "⁷",
    8: "⁸",
    9: "⁹",
  };

  function show(x, digits = 4, direction = 0) {
    if (x === null || !Number.isFinite(x)) return x < 0 ? "−∞" : "∞";
    const value = rounded(x, digits, direction);
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) {
      const [mantissa, exponent] = value.toExponential().split("e");
      const raised = [...exponent.replace("+", "")].map((sign) => RAISED[sign]).join("");
      return `${mantissa.replace("-", "−")} × 10${raised}`;
    }
    const decimals = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return value.toFixed(decimals).replace("-", "−");
  }

  // A share in per cent, rounded up, since a price must not look smaller than it is, or down (-1).
  function percent(share, direction = 1) {
    const value = Number((100 * share).toPrecision(12));
    if (Math.abs(value) < 1e-9) return "0%";
    if (value < 0.1 || value >= 1e4) return `${show(value, 3, direction)}%`;
    const round = direction > 0 ? Math.ceil : Math.floor;
    return `${value < 100 ? round(Number((100 * value).toPrecision(12))) / 100 : round(value)}%`;
  }

  // The same with two decimals, for columns.
  const cost = (share) =>
    percent(share).replace(/^(\d+)(\.\d)?%$/, (_, whole, tenth) => `${whole}${tenth ?? ".0"}0%`);

  const part = (count, all) => (all ? Math.round((100 * count) / all) : 0);
  const share = (count, all) =>
    count && part(count, all) === 0
      ? "<1%"
      : count < all && part(count, all) === 100
        ? ">99%"
        : `${part(count, all)}%`;
  const plural = (count, one, many = `${one}s`) =>
    `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
  const list = (items) =>
    items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

  function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === false) continue;
      if (key === "text") made.textContent = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const place = (id) => document.getElementById(id);

  function write(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // How much worse than the best a model is, for columns.
  const worse = (i) => (percent(price(i)) === "0%" ? "0%" : `+${cost(price(i))}`);

  // ---------------------------------------------------------------- state and what follows from it

  const state = {
    step: STEPS,
    choice: new Uint8Array(p),
    chosen: -1,
    wanted: -1,
    model: -1,
    all: false,
    search: "",
  };
  let view = null;

  // How many models have an objective up to this position; the last position takes them all.
  function modelsWithin(step) {
    if (step >= STEPS || !(span > 0)) return n;
    const limit = data.best + (span * step) / STEPS + 1e-9 * span;
    let low = 0,
      high = n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (objectives[middle] <= limit) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  const chosenAs = (kind) => byUse.filter((f) => state.choice[f] === kind);

  // Models within the tolerance that meet the choices; those for one feature may be ignored.
  function meeting(within, ignored = -1) {
    const among = new Uint32Array(words);
    for (let w = 0; w < words; w++) {
      const rest = within - 32 * w;
      among[w] = rest >= 32 ? 0xffffffff : rest > 0 ? (1 << rest) - 1 : 0;
    }
    let left = within;
    for (let f = 0; f < p; f++) {
      if (state.choice[f] === ANY || f === ignored) continue;
      const flip = state.choice[f] === FORBIDDEN ? 0xffffffff : 0;
      for (let w = 0; w < words; w++) among[w] &= bits[f][w] ^ flip;
      left = -1;
    }
    const models = [];
    for (let i = 0; i < within; i++)
      if (left >= 0 || (among[i >> 5] >>> (i & 31)) & 1) models.push(i);
    return { among, models: Int32Array.from(models) };
  }

  // For each feature the first model left that lacks it, -1 if all have it.
  function firstWithout(models) {
    const first = new Int32Array(p).fill(models.length ? models[0] : -1);
    if (!models.length) return first;
    let open = [...features.subarray(starts[models[0]], starts[models[0] + 1])];
    for (const f of open) first[f] = -1;
    for (let a = 1; a < models.length && open.length; a++) {
      open = open.filter((f) => has(f, models[a]) || ((first[f] = models[a]), false));
    }
    return first;
  }

  function look() {
    const within = modelsWithin(state.step);
    const { among, models } = meeting(within);
    const inside = new Int32Array(p);
    for (let a = 0; a < starts[within]; a++) inside[features[a]]++;
    const counts = models.length === within ? inside : countFeatures(models);
    return { within, among, models, inside, counts, without: firstWithout(models) };
  }

  function update() {
    view = look();
    // The model that was chosen, or the best one left as long as it is out.
    state.model =
      position(state.wanted) >= 0 ? state.wanted : view.models.length ? view.models[0] : -1;
    drawBar();
    drawFeatures();
    drawReplacements();
    drawMatrix();
    drawList();
    drawModel();
    drawPredictions();
  }

  function choose(f, kind) {
    state.choice[f] = kind;
    update();
  }

  // Where a model stands among those left.
  function position(i) {
    let low = 0,
      high = view.models.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (view.models[middle] === i) return middle;
      if (view.models[middle] < i) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  // ---------------------------------------------------------------- tolerance, counts, choices

  const bar = {};

  function makeBar() {
    const heights = new Int32Array(BINS);
    bar.bins = Int32Array.from(objectives, (value) =>
      Math.max(
        0,
        Math.min(BINS - 1, span > 0 ? Math.floor((BINS * (value - data.best)) / span) : 0),
      ),
    );
    for (const bin of bar.bins) heights[bin]++;
    bar.heights = heights;
    bar.highest = Math.max(1, ...heights);
    bar.columns = Array.from(heights, (count) => {
      const left = el("i", {});
      const column = el("span", {}, left);
      column.style.height = count ? `max(2px, ${(100 * count) / bar.highest}%)` : "0";
      return { column, left };
    });
    bar.slider = el("input", {
      type: "range",
      id: "slider",
      min: 0,
      max: STEPS,
      value: STEPS,
      step: 1,
      disabled: span > 0 ? null : "",
      oninput: () => {
        state.step = Number(bar.slider.value);
        update();
      },
    });
    bar.value = el("output", { for: "slider", id: "limit" });
    bar.count = el("p", { id: "count", role: "status", "aria-live": "polite" });
    bar.chips = el("div", { id: "chips", role: "group", "aria-label": "Choices" });
    bar.note = el("p", { id: "note", class: "soft", role: "status", "aria-live": "polite" });
    bar.caveat = el("p", { id: "caveat", class: "soft" });
    const title = "Models by objective: from the best, on the left, to the threshold";
    const histogram = el(
      "div",
      { class: "histogram", role: "img", "aria-label": title, title },
      ...bar.columns.map(({ column }) => column),
    );
    if (!data.complete && span > 0) {
      const below = data.completeBelow === null ? 0 : (data.completeBelow - data.best) / span;
      const open = el("b", { title: "Models may be missing here" });
      open.style.left = `${100 * Math.max(0, Math.min(1, below))}%`;
      histogram.append(open);
    }
    place("tolerance").append(
      el(
        "div",
        { class: "slide" },
        el("label", { for: "slider", text: "Tolerance" }),
        el("div", { class: "track" }, histogram, bar.slider),
        bar.value,
      ),
      bar.count,
      bar.chips,
      bar.note,
    );
    place("tolerance").after(bar.caveat);
  }

  function drawBar() {
    const limit = data.best + (span * state.step) / STEPS;
    const tolerance = percent((limit - data.best) / data.scale);
    write(bar.value, tolerance);
    bar.value.title = `objective at most ${show(limit, 8)}`;
    bar.slider.setAttribute(
      "aria-valuetext",
      `${tolerance} above the best, ${plural(view.within, "model")}`,
    );
    bar.slider.style.setProperty("--at", `${(100 * state.step) / STEPS}%`);

    const left = new Int32Array(BINS);
    for (const i of view.models) left[bar.bins[i]]++;
    bar.columns.forEach(({ left: part }, b) => {
      part.style.height = `${bar.heights[b] ? (100 * left[b]) / bar.heights[b] : 0}%`;
    });

    const required = chosenAs(REQUIRED),
      forbidden = chosenAs(FORBIDDEN);
    const count = view.models.length;
    let text = plural(view.within, "model");
    if (required.length || forbidden.length) text = `${count.toLocaleString("en")} of ${text} left`;
    text += ` within ${tolerance}.`;
    if (count) {
      const above = percent(price(view.models[0]));
      text +=
        above === "0%"
          ? " The best of them is as good as the best model."
          : ` The price: the best of them is ${above} above the best model.`;
    }
    write(bar.count, text);
    bar.chips.replaceChildren(...[...required, ...forbidden].map(chip));
    if (bar.chips.childElementCount) {
      bar.chips.append(
        el("button", {
          type: "button",
          id: "clear",
          class: "plain",
          text: "clear all",
          onclick: () => {
            state.choice.fill(ANY);
            update();
            bar.slider.focus();
          },
        }),
      );
    }
    write(bar.note, remark(required, forbidden));
    write(bar.caveat, caveat(limit));
  }

  function chip(f) {
    const kind = state.choice[f];
    return el("button", {
      type: "button",
      class: `chip ${WORDS[kind]}`,
      title: `${names[f]}: no longer ${WORDS[kind]}`,
      "aria-label": `${names[f]} is ${WORDS[kind]}: undo`,
      text: `${SIGNS[kind]} ${names[f]}`,
      onclick: () => {
        choose(f, ANY);
        (bar.chips.querySelector("button") || bar.slider).focus();
      },
    });
  }

  // What follows from the choices beside the counts: what is proven, and what is not listed.
  function remark(required, forbidden) {
    const parts = [];
    if (!view.models.length && !required.length && state.step >= STEPS && sure && n) {
      const without = forbidden.map((f) => names[f]);
      const which =
        without.length === 1 ? `without ${without[0]}` : `that lacks all of ${list(without)}`;
      parts.push(`Proven: no model ${which} is within the tolerance.`);
    } else if (!view.models.length) {
      parts.push("No listed model is left.");
    }
    if (required.length && !data.onlyK) {
      const addable = canTake(required, forbidden);
      if (addable) {
        parts.push(
          data.hasRules
            ? `${plural(addable, "more model")} in the list ${addable === 1 ? "has" : "have"} room ` +
                "for what is required: where the rules allow to add it, the objective does not rise."
            : `${plural(addable, "more model")} in the list can take what is required in addition: ` +
                `${addable === 1 ? "it has" : "they have"} room for it, and the objective does not rise.`,
        );
      }
    }
    return parts.join(" ");
  }

  // What the list does not hold.
  function caveat(limit) {
    const parts = [];
    if (state.step < STEPS && counted.some((size) => size < data.k)) {
      parts.push(
        "Models are listed for the full tolerance. Within a smaller one there may also be " +
          `larger models: listed ones with more ${unit}s.`,
      );
    }
    if (!data.complete && (data.completeBelow === null || limit >= data.completeBelow)) {
      parts.push(
        data.completeBelow === null || data.completeBelow <= data.best
          ? "The list is not proven complete."
          : `Beyond ${percent((data.completeBelow - data.best) / data.scale, -1)} models may be missing.`,
      );
    }
    return parts.join(" ");
  }

  // Models that lack some required feature but have room for them all.
  function canTake(required, forbidden) {
    let count = 0;
    for (let i = 0; i < view.within; i++) {
      if (forbidden.some((f) => has(f, i))) continue;
      const missing = required.filter((f) => !has(f, i)).length;
      if (missing && counted[i] + missing <= data.k) count++;
    }
    return count;
  }

  // ---------------------------------------------------------------- features

  const groups = {};
  const rows = new Array(p);

  function makeFeatures() {
    const search = el("input", {
      type: "search",
      id: "search",
      placeholder: `find a ${unit}`,
      "aria-label": `Find a ${unit}`,
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => {
        state.search = search.value.toLowerCase();
        drawFeatures();
      },
    });
    place("features").append(
      el("p", {
        class: "soft",
        text:
          `The bars show which share of the models left has a ${unit}; the thin mark is the share ` +
          `among all models within the tolerance. Click on a ${unit} to require it, once more to ` +
          "forbid it, and again to undo that. “Without” is the price of doing without it: how far " +
          "the best listed model that lacks it is above the best model.",
      }),
    );
    if (p > FEW) place("features").append(search);
    for (const [key, title] of [
      ["every", "In every listed model"],
      ["some", "In some"],
      ["none", "In none"],
    ]) {
      const group = {
        head: el("h3", { id: `head-${key}` }),
        note: el("p", { class: "soft" }),
        rows: el("ul", { "aria-labelledby": `head-${key}` }),
        title,
        order: null,
      };
      group.box = el(
        "div",
        { class: "group", id: `group-${key}` },
        group.head,
        group.note,
        group.rows,
      );
      groups[key] = group;
      place("features").append(group.box);
    }
    groups.some.more = el("button", {
      type: "button",
      class: "plain",
      id: "more",
      onclick: () => {
        state.all = !state.all;
        drawFeatures();
      },
    });
    groups.some.box.append(groups.some.more);
    if (data.unusedCount) {
      const rest = data.unusedCount - data.unused.length;
      groups.none.box.append(
        el(
          "details",
          {},
          el("summary", {
            text: `${plural(data.unusedCount, unit)} in no model of the whole list`,
          }),
          el("p", {
            class: "names",
            text: data.unused.map(readable).join(", ") + (rest ? ` and ${rest.toLocaleString("en")} more` : ""),
          }),
        ),
      );
    }
  }

  function featureRow(f) {
    if (rows[f]) return rows[f];
    const row = {
      sign: el("span", { class: "sign", "aria-hidden": "true" }),
      mark: el("i", { class: "mark" }),
      full: el("i", { class: "full" }),
      share: el("span", { class: "share" }),
      price: el("span", { class: "price" }),
    };
    row.button = el(
      "button",
      {
        type: "button",
        class: "feature",
        "data-feature": f,
        onclick: () => choose(f, (state.choice[f] + 1) % 3),
      },
      row.sign,
      el("span", { class: "name", text: names[f], title: names[f] }),
      el("span", { class: "meter" }, row.full, row.mark),
      row.share,
      row.price,
    );
    const why = el("button", {
      type: "button",
      class: "swap",
      text: "⇄",
      title: "What replaces it?",
      "aria-label": `What replaces ${names[f]}?`,
      onclick: () => {
        pick(f);
        place("replacements").scrollIntoView({ block: "start" });
        stand.select.focus({ preventScroll: true });
      },
    });
    row.item = el("li", {}, row.button, why);
    rows[f] = row;
    return row;
  }

  function drawFeatures() {
    const order = { every: [], some: [], none: [] };
    const byShare = byUse.slice().sort((a, b) => view.inside[b] - view.inside[a]);
    for (const f of byShare) {
      const typed = `${names[f]}\n${data.names[f]}`.toLowerCase();
      if (state.search && !typed.includes(state.search)) continue;
      order[view.inside[f] === 0 ? "none" : view.inside[f] === view.within ? "every" : "some"].push(
        f,
      );
    }
    for (const [key, group] of Object.entries(groups)) {
      const all = order[key];
      const few = key !== "every" && !state.all && all.length > FEW + 4;
      const shown = few ? all.filter((f, a) => a < FEW || state.choice[f] !== ANY) : all;
      const total = all.length + (key === "none" && !state.search ? data.unusedCount : 0);
      write(group.head, `${group.title} (${total.toLocaleString("en")})`);
      arrange(group, shown);
      for (const f of shown) drawFeature(f);
      if (group.more) {
        group.more.hidden = all.length <= FEW + 4;
        write(group.more, state.all ? "show fewer" : `show all ${all.length}`);
      }
      if (key === "none" && few)
        write(group.note, `The first ${shown.length} are shown; look for the others by name.`);
    }
    const whole = state.step >= STEPS;
    write(
      groups.every.note,
      !view.within
        ? "No listed model is within this tolerance."
        : !order.every.length
          ? `No ${unit} is in every model.`
          : whole && sure
            ? "Proven: every near-optimal model has these."
            : "",
    );
    if (!state.search)
      write(groups.some.note, order.some.length ? "" : "Either in all models or in none.");
    groups.none.box.hidden = !order.none.length && !data.unusedCount;
    if (state.all || order.none.length <= FEW + 4) {
      write(
        groups.none.note,
        !whole || !sure || !n
          ? ""
          : counted.every((size) => size === data.k)
            ? "Proven: no near-optimal model has these."
            : "Proven: no near-optimal model needs these. " +
              `Models with fewer than k ${unit}s can still take them` +
              (data.hasRules ? ", as far as the rules allow it." : "."),
      );
    }
  }

  // Rows move only where the order has changed; the focus stays with its row.
  function arrange(group, shown) {
    const order = shown.join();
    if (group.order === order) return;
    group.order = order;
    const focused = document.activeElement;
    group.rows.replaceChildren(...shown.map((f) => featureRow(f).item));
    if (focused !== document.activeElement && group.rows.contains(focused))
      focused.focus({ preventScroll: true });
  }

  function drawFeature(f) {
    const row = featureRow(f);
    const kind = state.choice[f];
    const left = view.models.length;
    const i = view.without[f];
    const word =
      !left || kind === REQUIRED
        ? "–"
        : i < 0
          ? `>${percent((span * state.step) / STEPS / data.scale)}`
          : worse(i);
    row.button.className = `feature ${WORDS[kind]}`;
    write(row.sign, SIGNS[kind]);
    row.mark.hidden = left === view.within;
    row.mark.style.left = `calc(${view.within ? (100 * view.inside[f]) / view.within : 0}% - 2px)`;
    row.full.style.width = `${left ? (100 * view.counts[f]) / left : 0}%`;
    write(row.share, left ? share(view.counts[f], left) : "–");
    const always = given.has(f) ? "given" : free.has(f) ? "not counted" : "";
    write(row.price, always || `without ${word}`);
    row.button.setAttribute(
      "aria-label",
      `${names[f]}: ${WORDS[kind]}; in ${view.counts[f]} of ${plural(left, "model")} left; ` +
        (always || `without it ${word}`),
    );
  }

  // ---------------------------------------------------------------- what replaces what

  const stand = {};
  const matrix = { order: [], at: [0, 1], cells: [] };

  function pick(f) {
    state.chosen = f;
    drawReplacements();
  }

  function makeReplacements() {
    stand.select = el(
      "select",
      { id: "which", onchange: () => pick(Number(stand.select.value)) },
      ...byUse.map((f) => el("option", { value: f, text: names[f] })),
    );
    stand.text = el("p", { id: "stand-text" });
    stand.rows = el("ul", { class: "standins", "aria-label": `${capital}s that replace it` });
    matrix.table = el("table", {
      role: "grid",
      class: "matrix",
      "aria-label": `How often ${unit}s are in the same models`,
    });
    matrix.say = el("p", { id: "pair", class: "soft" });
    const scale = el(
      "p",
      { class: "scale", "aria-hidden": "true" },
      "−1 instead of each other ",
      el("i", {}),
      " together +1",
    );
    place("replacements").append(
      el(
        "div",
        { class: "two" },
        el(
          "div",
          {},
          el("p", {}, el("label", { for: "which", text: "Models without " }), stand.select),
          stand.text,
          stand.rows,
        ),
        el(
          "div",
          {},
          el("p", {
            class: "soft",
            text:
              `Correlation of being in a model, over the models left, for the ${unit}s used most. ` +
              "Orange with a minus: one is in where the other is out. Blue: both or neither.",
          }),
          el("div", { class: "scroll" }, matrix.table),
          scale,
          matrix.say,
        ),
      ),
    );
    matrix.table.addEventListener("pointerover", (event) => {
      if (event.target.dataset.at) tell(...cellAt(event.target));
    });
    matrix.table.addEventListener("focusin", (event) => {
      if (event.target.dataset.at) tell(...cellAt(event.target));
    });
    matrix.table.addEventListener("click", (event) => {
      if (event.target.dataset.at) enter(event.target);
    });
    matrix.table.addEventListener("keydown", moveInMatrix);
  }

  function drawReplacements() {
    const undecided = byUse.filter((f) => view.inside[f] > 0 && view.inside[f] < view.within);
    let f = state.chosen;
    if (f < 0) f = undecided.length ? undecided[0] : p ? byUse[0] : -1;
    if (f < 0) {
      write(stand.text, `No model has a ${unit}.`);
      return;
    }
    stand.select.value = String(f);
    const { models } = meeting(view.within, f);
    const mine = [],
      others = [];
    for (const i of models) (has(f, i) ? mine : others).push(i);
    const withIt = countFeatures(mine),
      without = countFeatures(others);
    const gain = (g) => without[g] / others.length - withIt[g] / mine.length;
    let best = [];
    if (mine.length && others.length) {
      best = byUse
        .filter(
          (g) =>
            g !== f && gain(g) > 0.1 && without[g] * mine.length > 1.5 * withIt[g] * others.length,
        )
        .sort((a, b) => gain(b) - gain(a))
        .slice(0, 8);
    }
    const left = `${plural(models.length, "model")} left`;
    const numbers =
      `${plural(others.length, "model does", "models do")} without it, ` +
      `${mine.length.toLocaleString("en")} with it.`;
    write(
      stand.text,
      !models.length
        ? "No model is left."
        : !others.length
          ? `All ${left} have it: nothing replaces it within this tolerance.`
          : !mine.length
            ? `None of the ${left} has it.`
            : best.length
              ? `${numbers} In its place ${others.length === 1 ? "it has" : "they have"}:`
              : `${numbers} No ${unit} takes its place in particular.`,
    );
    stand.rows.replaceChildren(
      ...best.map((g) => standIn(g, without[g], others.length, withIt[g], mine.length)),
    );
  }

  function standIn(g, out, ofOut, inside, ofIn) {
    const bars = [
      ["without", out, ofOut],
      ["with", inside, ofIn],
    ].map(([word, count, all]) => {
      const fill = el("i", { class: word === "without" ? "full" : "pale" });
      fill.style.width = `${(100 * count) / all}%`;
      return el(
        "span",
        { class: "line" },
        el("span", { class: "word", text: `${word} it` }),
        el("span", { class: "meter" }, fill),
        el("span", { class: "share", text: share(count, all) }),
      );
    });
    return el(
      "li",
      {},
      el("button", {
        type: "button",
        class: "plain name",
        text: names[g],
        title: `What replaces ${names[g]}?`,
        onclick: () => pick(g),
      }),
      ...bars,
    );
  }

  // Correlation of the indicators of two features over the models left.
  function association(a, b) {
    const m = view.models.length;
    const both = countBoth(bits[a], bits[b], view.among);
    const x = view.counts[a],
      y = view.counts[b];
    return (m * both - x * y) / Math.sqrt(x * (m - x) * y * (m - y));
  }

  function drawMatrix() {
    const size = window.innerWidth < 600 ? 8 : 14;
    const used = byUse
      .filter((f) => view.counts[f] > 0 && view.counts[f] < view.models.length)
      .sort((a, b) => view.counts[b] - view.counts[a])
      .slice(0, size);
    const value = new Map();
    const key = (a, b) => (a < b ? a * p + b : b * p + a);
    for (const a of used) for (const b of used) if (a < b) value.set(key(a, b), association(a, b));
    // Neighbours replace each other: after each feature comes the one that replaces it most.
    const order = used.splice(0, 1);
    while (used.length) {
      const last = order.at(-1);
      let next = 0;
      used.forEach((g, at) => {
        if (value.get(key(last, g)) < value.get(key(last, used[next]))) next = at;
      });
      order.push(...used.splice(next, 1));
    }
    matrix.order = order;
    matrix.table.parentElement.hidden = order.length < 2;
    if (order.length < 2) {
      write(
        matrix.say,
        `There are fewer than two ${unit}s that some of the models left have and others do not.`,
      );
      return;
    }
    if (matrix.cells.length !== order.length) fillMatrix(order.length);
    order.forEach((a, r) => {
      write(matrix.heads[r], `${r + 1} ${names[a]}`);
      matrix.heads[r].title = names[a];
      order.forEach((b, c) =>
        drawCell(matrix.cells[r][c], a, b, a === b ? null : value.get(key(a, b))),
      );
    });
    tell(...matrix.at);
  }

  function fillMatrix(size) {
    matrix.at = [0, 1];
    matrix.heads = [];
    matrix.cells = [];
    const head = el(
      "tr",
      { role: "row" },
      el("td", {}),
      ...Array.from({ length: size }, (_, c) =>
        el("th", { scope: "col", role: "columnheader", text: c + 1 }),
      ),
    );
    const body = Array.from({ length: size }, (_, r) => {
      matrix.heads.push(el("th", { scope: "row", role: "rowheader" }));
      matrix.cells.push(
        Array.from({ length: size }, (_, c) =>
          el("td", {
            role: "gridcell",
            tabindex: r === 0 && c === 1 ? 0 : -1,
            "data-at": `${r} ${c}`,
          }),
        ),
      );
      return el("tr", { role: "row" }, matrix.heads[r], ...matrix.cells[r]);
    });
    matrix.table.replaceChildren(el("thead", {}, head), el("tbody", {}, ...body));
  }

  function drawCell(cell, a, b, value) {
    const text =
      value === null
        ? ""
        : value
            .toFixed(1)
            .replace("-", "−")
            .replace(/^(−?)0\./, "$1.")
            .replace(/^−?\.0$/, "0")
            .replace(/\.0$/, "");
    write(cell, text);
    const strength = Math.min(1, Math.abs(value ?? 0));
    cell.className = value === null ? "same" : strength > 0.85 ? "strong" : "";
    cell.style.background =
      value === null
        ? ""
        : `rgb(var(${value < 0 ? "--instead" : "--together"}) / ${strength.toFixed(3)})`;
    const label =
      value === null
        ? names[a]
        : `${names[a]} and ${names[b]}: ${value.toFixed(2).replace("-", "−")}`;
    cell.title = label;
    cell.setAttribute("aria-label", label);
  }

  const cellAt = (cell) => cell.dataset.at.split(" ").map(Number);

  function tell(r, c) {
    const a = matrix.order[r],
      b = matrix.order[c];
    if (a === undefined || b === undefined) return;
    const m = view.models.length;
    if (a === b) {
      write(
        matrix.say,
        `${names[a]} is in ${view.counts[a].toLocaleString("en")} of ${plural(m, "model")}.`,
      );
      return;
    }
    const both = countBoth(bits[a], bits[b], view.among);
    const value = association(a, b);
    const kind =
      value < -0.3
        ? "They tend to replace each other."
        : value > 0.3
          ? "They tend to go together."
          : "Neither says much about the other.";
    write(
      matrix.say,
      `Of ${plural(m, "model")}: ${names[a]} and ${names[b]} ${both}, only ${names[a]} ` +
        `${view.counts[a] - both}, only ${names[b]} ${view.counts[b] - both}, ` +
        `neither ${m - view.counts[a] - view.counts[b] + both}. ${kind}`,
    );
  }

  function enter(cell) {
    const [r, c] = cellAt(cell);
    goTo(r, c);
    pick(matrix.order[r]);
  }

  function goTo(r, c) {
    const last = matrix.order.length - 1;
    matrix.cells[matrix.at[0]][matrix.at[1]].tabIndex = -1;
    matrix.at = [Math.max(0, Math.min(last, r)), Math.max(0, Math.min(last, c))];
    const cell = matrix.cells[matrix.at[0]][matrix.at[1]];
    cell.tabIndex = 0;
    cell.focus();
  }

  function moveInMatrix(event) {
    if (!event.target.dataset.at) return;
    const [r, c] = cellAt(event.target);
    const last = matrix.order.length - 1;
    const moves = {
      ArrowUp: [r - 1, c],
      ArrowDown: [r + 1, c],
      ArrowLeft: [r, c - 1],
      ArrowRight: [r, c + 1],
      Home: [r, 0],
      End: [r, last],
    };
    if (moves[event.key]) goTo(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") enter(event.target);
    else return;
    event.preventDefault();
  }

  // ---------------------------------------------------------------- the list of models

  // Height of a row, which the style decides, of the visible part and what is above it, in pixels.
  const roll = { height: 40, visible: 480, top: 0 };

  function makeList() {
    roll.rows = el("div", { class: "rows" });
    roll.space = el("div", { class: "space", role: "presentation" }, roll.rows);
    roll.rows.setAttribute("role", "presentation");
    roll.box = el(
      "div",
      {
        class: "list",
        id: "list",
        role: "listbox",
        tabindex: 0,
        "aria-label": "Models left, the best first",
        onscroll: () => {
          roll.top = roll.box.scrollTop;
          drawRows();
        },
        onkeydown: moveInList,
        onclick: (event) => {
          const row = event.target.closest("[data-model]");
          if (row) select(Number(row.dataset.model));
        },
      },
      roll.space,
    );
    roll.empty = el("p", { class: "soft", text: "No listed model meets these choices." });
    roll.head = el(
      "div",
      { class: "row heads", "aria-hidden": "true" },
      el("span", { text: "no." }),
      el("span", { text: "above" }),
      el("span", { text: "size" }),
      el("span", { text: `${unit}s` }),
    );
    roll.printed = el("p", { class: "soft printed" });
    roll.detail = el("div", {
      class: "detail",
      id: "detail",
      role: "region",
      "aria-label": "The chosen model",
    });
    place("models").append(
      el("p", {
        class: "soft",
        text:
          "The best first. Pale names are in every model within the tolerance. " +
          "Click on a model, or use the arrow keys, to see it.",
      }),
      el(
        "div",
        { class: "two" },
        el("div", {}, roll.head, roll.box, roll.empty, roll.printed),
        roll.detail,
      ),
    );
    new ResizeObserver(() => {
      measure();
      drawList();
    }).observe(roll.box);
    measure();
  }

  // Measured when the size changes and not at each move of the slider, which would have to wait.
  function measure() {
    roll.height = parseInt(getComputedStyle(roll.box).getPropertyValue("--row"), 10) || 40;
    roll.visible = roll.box.clientHeight || 480;
  }

  function drawList() {
    const m = view.models.length;
    roll.space.style.height = `${m * roll.height}px`;
    roll.box.hidden = roll.head.hidden = m === 0;
    roll.empty.hidden = m > 0;
    drawRows();
  }

  // Only what is visible is in the document, and a few rows around it.
  function drawRows() {
    const paper = document.body.classList.contains("paper");
    const m = view.models.length;
    const some = paper ? PRINTED : Math.ceil(roll.visible / roll.height) + 6;
    const first = paper
      ? 0
      : Math.max(0, Math.min(m - some, Math.floor(roll.top / roll.height) - 3));
    const last = Math.min(m, first + some);
    const made = [];
    for (let at = first; at < last; at++) made.push(modelRow(view.models[at], at));
    roll.rows.style.transform = `translateY(${first * roll.height}px)`;
    roll.rows.replaceChildren(...made);
    if (state.model >= 0) roll.box.setAttribute("aria-activedescendant", `model-${state.model}`);
    else roll.box.removeAttribute("aria-activedescendant");
  }

  function modelRow(i, at) {
    const mine = Array.from(features.subarray(starts[i], starts[i + 1]));
    mine.sort(
      (a, b) =>
        (view.inside[a] === view.within) - (view.inside[b] === view.within) ||
        totals[b] - totals[a],
    );
    const words = el("span", { class: "names" });
    mine.forEach((f, a) => {
      if (a) words.append(", ");
      words.append(
        el("span", { class: view.inside[f] === view.within ? "common" : null, text: names[f] }),
      );
    });
    if (!mine.length) words.append(`no ${unit}s`);
    return el(
      "div",
      {
        class: "row",
        role: "option",
        id: `model-${i}`,
        "data-model": i,
        "aria-selected": String(i === state.model),
        "aria-posinset": at + 1,
        "aria-setsize": view.models.length,
      },
      el("span", { text: i + 1 }),
      el("span", { text: `${borderline.has(i) ? "≈ " : ""}${worse(i)}` }),
      el("span", { text: mine.length }),
      words,
    );
  }

  function select(i) {
    state.wanted = state.model = i;
    const top = position(i) * roll.height;
    if (top < roll.box.scrollTop) roll.box.scrollTop = top;
    else if (top + roll.height > roll.box.scrollTop + roll.box.clientHeight)
      roll.box.scrollTop = top + roll.height - roll.box.clientHeight;
    roll.top = roll.box.scrollTop;
    drawRows();
    drawModel();
    drawPredictions();
  }

  function moveInList(event) {
    const m = view.models.length;
    const at = position(state.model);
    const page = Math.max(1, Math.floor(roll.box.clientHeight / roll.height) - 1);
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: m - 1,
      Enter: at,
      " ": at,
    }[event.key];
    if (to === undefined || !m) return;
    event.preventDefault();
    select(view.models[Math.max(0, Math.min(m - 1, to))]);
  }

  // ---------------------------------------------------------------- one model

  function drawModel() {
    const i = state.model;
    if (i < 0) {
      roll.detail.replaceChildren(el("p", { class: "soft", text: "No model is chosen." }));
      return;
    }
    const terms = [];
    for (let a = termStarts[i]; a < termStarts[i + 1]; a++) terms.push(a);
    roll.detail.replaceChildren(
      el("h3", { text: `Model ${i + 1}` }),
      equation(i, terms),
      el("p", {
        class: "soft",
        text:
          `Objective ${show(objectives[i], 8)}, ${percent(price(i))} above the best. ${difference(i)}` +
          (borderline.has(i) ? " It equals the threshold up to rounding." : ""),
      }),
      terms.length ? coefficientTable(terms) : el("p", { text: "It has no features." }),
    );
  }

  function equation(i, terms) {
    const line = el("p", { class: "equation" }, el("var", { text: "y" }), " =");
    const constant = hasIntercept || !terms.length;
    if (constant) line.append(" ", el("span", { class: "term", text: show(data.intercepts[i]) }));
    terms.forEach((a, at) => {
      const value = data.values[a];
      const sign = value < 0 ? "−" : at || constant ? "+" : "";
      const name = memberNames[memberOf[a]];
      const times = /^\p{Nd}/u.test(name) ? "·\u00a0" : "";
      line.append(
        " ",
        el(
          "span",
          { class: "term" },
          `${sign}${at || constant ? "\u00a0" : ""}${show(Math.abs(value))}\u00a0${times}`,
          el("var", { text: name }),
        ),
      );
    });
    return line;
  }

  function difference(i) {
    const extra = [];
    for (let a = starts[i]; a < starts[i + 1]; a++)
      if (!data.bestSupport.includes(features[a])) extra.push(names[features[a]]);
    const lacking = data.bestSupport
      .filter((f) => !has(f, i))
      .map((f) => names[f])
      .concat(data.bestUnlisted);
    if (!extra.length && !lacking.length) return `It has the ${unit}s of the best model.`;
    if (!extra.length) return `It is the best model without ${list(lacking)}.`;
    if (!lacking.length) return `It is the best model with ${list(extra)}.`;
    return `Compared with the best model it has ${list(extra)} instead of ${list(lacking)}.`;
  }

  // Bars of ranges on one axis from the smallest to the largest number.
  function axis(lows, highs) {
    const finite = [...lows, ...highs].filter((x) => x !== null && Number.isFinite(x));
    const from = Math.min(0, ...finite),
      to = Math.max(0, ...finite);
    return (x) => Math.max(0, Math.min(100, to > from ? (100 * (x - from)) / (to - from) : 50));
  }

  function stretch(kind, at, from, to) {
    const line = el("i", { class: kind });
    line.style.left = `${at(from)}%`;
    line.style.width = `${Math.max(0, at(to) - at(from))}%`;
    return line;
  }

  function tick(kind, at, x) {
    const mark = el("i", { class: kind });
    mark.style.left = `${at(x)}%`;
    return mark;
  }

  // Lines of a table, each group of several features, or of one with another name, under its name.
  function underGroups(terms, lines) {
    if (!members) return lines;
    const own = terms.map((a) => members.groups[memberOf[a]]);
    const order = terms.map((_, at) => at).sort((a, b) => own[a] - own[b] || a - b);
    const made = [];
    order.forEach((at, place) => {
      const f = own[at];
      const alone =
        own.indexOf(f) === own.lastIndexOf(f) && names[f] === memberNames[memberOf[terms[at]]];
      if (!alone && (place === 0 || own[order[place - 1]] !== f)) {
        const head = el("th", { scope: "rowgroup", colspan: hasRanges ? 4 : 2, text: names[f] });
        made.push(el("tr", { class: "head" }, head));
      }
      if (!alone) lines[at].classList.add("part");
      made.push(lines[at]);
    });
    return made;
  }

  function plainTable(terms) {
    const lines = terms.map((a) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", text: memberNames[memberOf[a]] }),
        el("td", { text: show(data.values[a]) }),
      ),
    );
    const heads = ["feature", "fitted"].map((text) => el("th", { scope: "col", text }));
    return el(
      "div",
      {},
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          { class: "terms" },
          el("thead", {}, el("tr", {}, ...heads)),
          el("tbody", {}, ...underGroups(terms, lines)),
        ),
      ),
      el("p", {
        class: "soft",
        text: "With linear constraints there are no ranges: these are the best coefficients.",
      }),
    );
  }

  const rangeText = (from, to) => `${show(low(from), 4, -1)} to ${show(high(to), 4, 1)}`;

  function coefficientTable(terms) {
    if (!hasRanges) return plainTable(terms);
    const of = (array) => terms.map((a) => array[a]);
    const whole = (array) => terms.map((a) => array[memberOf[a]]);
    const at = axis(
      [...of(data.lows), ...whole(data.rangeLow)],
      [...of(data.highs), ...whole(data.rangeHigh)],
    );
    const lines = terms.map((a) => {
      const f = memberOf[a];
      const range = rangeText(data.lows[a], data.highs[a]);
      const all = rangeText(data.rangeLow[f], data.rangeHigh[f]);
      return el(
        "tr",
        {},
        el("th", { scope: "row", text: memberNames[f] }),
        el("td", { text: show(data.values[a]) }),
        el("td", { text: range }),
        el(
          "td",
          { class: "drawn" },
          el(
            "span",
            {
              class: "range",
              role: "img",
              title: `in this model ${range}; in all listed models ${all}`,
              "aria-label": `in all listed models ${all}`,
            },
            tick("zero", at, 0),
            stretch("whole", at, low(data.rangeLow[f]), high(data.rangeHigh[f])),
            stretch("mine", at, low(data.lows[a]), high(data.highs[a])),
            tick("dot", at, data.values[a]),
          ),
        ),
      );
    });
    return el(
      "div",
      {},
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          { class: "terms" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ...["feature", "fitted", "range", ""].map((text) => el("th", { scope: "col", text })),
            ),
          ),
          el("tbody", {}, ...underGroups(terms, lines)),
        ),
      ),
      el("p", {
        class: "soft",
        text:
          "Range: all values that keep this model within the full tolerance, whatever its other " +
          "coefficients are. " +
          "The pale bar is the range over all listed models, and the line is 0.",
      }),
    );
  }

  // ---------------------------------------------------------------- predictions

  function drawPredictions() {
    const r = data.rows,
      spot = place("predictions");
    if (!r || !spot) return;
    const count = rowCount;
    const lows = new Float64Array(count).fill(Infinity),
      highs = new Float64Array(count).fill(-Infinity);
    for (const i of view.models) {
      for (let a = 0; a < count; a++) {
        const from = predicted.low[i * count + a],
          to = predicted.high[i * count + a];
        if (from < lows[a]) lows[a] = from;
        if (to > highs[a]) highs[a] = to;
      }
    }
    const finite = [...r.allLow, ...r.allHigh].filter((x) => x !== null);
    const from = Math.min(...finite),
      to = Math.max(...finite);
    const at = (x) => Math.max(0, Math.min(100, to > from ? (100 * (x - from)) / (to - from) : 50));
    const left = view.models.length > 0,
      i = state.model;
    const heads = [
      "row",
      left ? `model ${i + 1}` : "model",
      ...(r.low ? ["its range"] : []),
      "models left",
      "all listed",
      "",
    ];
    const lines = r.labels.map((label, a) => {
      const b = i * count + a;
      const drawn = el(
        "span",
        { class: "range", "aria-hidden": "true" },
        stretch("whole", at, low(r.allLow[a]), high(r.allHigh[a])),
      );
      if (left)
        drawn.append(
          stretch("some", at, lows[a], highs[a]),
          ...(r.low ? [stretch("mine", at, low(r.low[b]), high(r.high[b]))] : []),
          tick("dot", at, r.fitted[b]),
        );
      return el(
        "tr",
        {},
        el("th", { scope: "row", text: label }),
        el("td", { text: left ? show(r.fitted[b]) : "–" }),
        ...(r.low ? [el("td", { text: left ? rangeText(r.low[b], r.high[b]) : "–" })] : []),
        el("td", { "data-word": "models left", text: left ? rangeText(lows[a], highs[a]) : "–" }),
        el("td", { "data-word": "all listed", text: rangeText(r.allLow[a], r.allHigh[a]) }),
        el("td", { class: "drawn" }, drawn),
      );
    });
    spot.replaceChildren(
      el("p", {
        class: "soft",
        text:
          (r.low
            ? "What the chosen model predicts, and how far predictions go within the full tolerance: " +
              "with this model, with the models left, and with all listed models. "
            : "What the chosen model predicts, and how far apart the predictions of the models left " +
              "and of all listed models are, each with its best coefficients. ") +
          "These are not prediction intervals: noise is not counted.",
      }),
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          { class: "predictions" },
          el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col", text })))),
          el("tbody", {}, ...lines),
        ),
      ),
    );
  }

  // ---------------------------------------------------------------- start

  function makeCopies() {
    if (!data.copies.length) return;
    const some = data.copies
      .slice(0, 50)
      .map((pair) => pair.map(readable).join(" for "));
    if (data.copies.length > 50) some.push(`and ${data.copies.length - 50} more`);
    place("copies").append(
      el("p", {
        text:
          `${plural(data.copies.length, "feature repeats", "features repeat")} another one up to a factor. ` +
          `Each may stand for the other, and only the second of each pair is listed: ${some.join(", ")}.`,
      }),
    );
  }

  makeCopies();
  makeBar();
  makeFeatures();
  makeReplacements();
  makeList();
  update();
  window.addEventListener("resize", () => drawMatrix());
  window.addEventListener("beforeprint", () => {
    document.body.classList.add("paper");
    const m = view.models.length;
    write(
      roll.printed,
      m > PRINTED ? `The first ${PRINTED} of ${m.toLocaleString("en")} models.` : "",
    );
    drawRows();
  });
  window.addEventListener("afterprint", () => {
    document.body.classList.remove("paper");
    drawRows();
  });
})();
