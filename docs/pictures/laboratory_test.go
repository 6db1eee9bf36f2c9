package pictures

// laboratory shows how kvbench comes to a result: cmd/kvbench/internal.
func laboratory() *canvas {
	c := &canvas{height: 432, title: "From keys to charts: the pipeline of kvbench",
		description: "Keys and settings make a cell. Its store is loaded, shaped, reopened and warmed up; then timed " +
			"loops ask existing and absent keys. Every answer and every identity of counters is checked; a " +
			"wrong one ends the run with status 3. A cell's result is a JSON file. sweep runs many cells, " +
			"report and diff read the files."}
	c.box("disk", 16, 16, 218, 62, "*keys", "generated, lines of a file,", "or a lookup trace")
	c.box("disk", 246, 16, 218, 62, "*settings", "engine, filter, shape, cache,", "workload, seed")
	c.line("arrow", 125, 78, 125, 104)
	c.line("arrow", 355, 78, 355, 104)
	c.box("plain", 16, 104, 448, 162)
	c.text(30, 124, "*a cell", "~one experiment; sweep runs a matrix of them")
	steps := [][]string{{"load", "and shape"}, {"reopen,", "warm up"}, {"timed loops", "of lookups"},
		{"checks of", "answers", "and counts"}}
	for i, lines := range steps {
		x, style := 30+i*108, "mem"
		if i == len(steps)-1 {
			style = "hot"
		}
		c.box(style, x, 154, 96, 62, lines...)
		if i > 0 {
			c.line("arrow", x-12, 185, x, 185)
		}
	}
	c.text(30, 238, "~SiftKV and other stores behind one", "~interface get the same questions.")
	c.line("arrow", 402, 216, 402, 292)
	c.box("stop", 332, 292, 132, 44, "wrong answer:", "status 3, no result")
	c.line("arrow", 216, 266, 216, 292)
	c.box("disk", 130, 292, 172, 44, "a JSON file", "~counters, times, machine")
	c.line("arrow", 170, 336, 84, 372)
	c.line("arrow", 216, 336, 222, 372)
	c.line("arrow", 262, 336, 370, 372)
	c.box("plain", 16, 372, 136, 44, "`report", "~tables, charts, a page")
	c.box("plain", 160, 372, 124, 44, "`sweep", "~skips what is there")
	c.box("plain", 292, 372, 172, 44, "`diff", "~two sets; status 4 if worse")
	return c
}
