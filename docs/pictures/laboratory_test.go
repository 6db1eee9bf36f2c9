package pictures

// laboratory shows how kvbench comes to a result: cmd/kvbench/internal.
func laboratory() *canvas {
	c := &canvas{width: pageWidth, height: 336, title: "From keys to charts: the pipeline of kvbench",
		description: "Keys and settings make a cell. Its store is loaded, shaped, reopened and warmed up; then timed " +
			"loops ask existing and absent keys. Every answer and every identity of counters is checked; a " +
			"wrong one ends the run with status 3. A cell's result is a JSON file. sweep runs many cells, " +
			"report and diff read the files."}
	const w, h = 132, 62
	c.box("disk", 20, 20, 186, h, "*keys", "generated, lines of a file,", "or a lookup trace")
	c.box("disk", 20, 96, 186, h, "*settings", "engine, filter, shape, cache,", "workload, seed")
	c.box("plain", 238, 16, 502, 146)
	c.text(250, 36, "*a cell", "~one experiment; sweep runs a matrix of them")
	c.line("arrow", 206, 51, 238, 70)
	c.line("arrow", 206, 127, 238, 108)
	steps := [][]string{{"load", "and shape"}, {"reopen,", "warm up"}, {"timed loops", "of lookups"},
		{"checks of", "answers, counts"}}
	for i, lines := range steps {
		x, style := 250+i*122, "mem"
		if i == len(steps)-1 {
			style = "hot"
		}
		c.box(style, x, 78, 108, 52, lines...)
		if i > 0 {
			c.line("arrow", x-14, 104, x, 104)
		}
	}
	c.text(250, 150, "~SiftKV and other stores behind one interface get the same questions.")
	c.line("arrow", 670, 130, 670, 196)
	c.box("stop", 604, 196, w, 44, "wrong answer:", "status 3, no result")
	c.line("arrow", 486, 162, 486, 196)
	c.box("disk", 400, 196, 172, 44, "a JSON file", "~counters, times, machine")
	c.line("arrow", 440, 240, 340, 276)
	c.line("arrow", 486, 240, 486, 276)
	c.line("arrow", 530, 240, 634, 276)
	c.box("plain", 260, 276, 148, 44, "`report", "~tables, charts, a page")
	c.box("plain", 424, 276, 124, 44, "`sweep", "~skips what is there")
	c.box("plain", 564, 276, 172, 44, "`diff", "~two sets; status 4 if worse")
	return c
}
