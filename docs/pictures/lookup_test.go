package pictures

// lookup shows where lookups of absent keys end. Its numbers are of
//
//	kvbench run --keys 300000 --shape young:16
//
// for a thousand lookups: columns files, out of bounds, negatives, false+, no index and blocks of the table by level.
func lookup() *canvas {
	c := &canvas{height: 346, title: "Where 1,000 lookups of absent keys end",
		description: "A funnel. 1,000 lookups in a store of 17 sorted runs consider 17,000 files. Bounds rule out 7, " +
			"filters 16,833 and indexes none. 160 data blocks are read."}
	c.text(16, 26, "*1,000 lookups of absent keys, 17 sorted runs")
	const center, top, step, bar, widest = 382, 44, 51, 28, 164
	stages := []struct {
		files        int
		text, detail string
	}{
		{17000, "*17,000 files may have the key", "~one of each sorted run"},
		{16993, "*bounds rule out 7", "~smallest and largest key, in memory"},
		{160, "*filters rule out 16,833", "~10 bits per key, in memory"},
		{160, "*indexes rule out none", "~the largest key of each block, in memory"},
		{160, "*160 data blocks are read", "~from cache or disk; the key is in none"},
	}
	of := func(files int) int { return max(files*widest/stages[0].files/2, 2) }
	for i, s := range stages {
		y, half := top+i*step, of(s.files)
		style := "mem"
		if i == len(stages)-1 {
			style = "hot"
		}
		if i > 0 {
			before := of(stages[i-1].files)
			c.shape("plain", center-before, y-step+bar, center+before, y-step+bar, center+half, y, center-half, y)
		}
		c.shape(style, center-half, y, center+half, y, center+half, y+bar, center-half, y+bar)
		c.text(16, y+11, s.text, s.detail)
	}
	c.middle(center, top+bar/2+5, "17,000")
	c.text(16, top+5*step+14, "~Without filters 16,993 blocks. A key that is there costs 1.13 blocks",
		"~here, and 1 in a settled store.")
	return c
}
