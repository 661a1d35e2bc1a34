"""bestk against targets and limits: tall data, nodes, term libraries, start-up."""
