package pictures

// compaction shows what a compaction of level 0 of a leveled store does. Files are where their keys are.
func compaction() *canvas {
	c := &canvas{width: pageWidth, height: 330, title: "Levels and runs before and after a compaction of level 0",
		description: "Before: four overlapping runs in level 0, four files of one run in level 5 and five " +
			"in level 6. The compaction merges level 0 and the three files of level 5 that share keys with " +
			"it. After: level 0 is empty, level 5 has four new files and one old one, level 6 is as it was. A " +
			"lookup asks two files instead of six."}
	half := func(x int, head, foot string, level0, level5 func(x int)) {
		c.text(x, 28, "*"+head)
		c.text(x+74, 48, "~keys →")
		for i, name := range []string{"level 0", "level 5", "level 6"} {
			c.text(x, []int{98, 201, 256}[i], name)
		}
		level0(x + 74)
		level5(x + 74)
		for i := range 5 {
			c.box("disk", x+74+i*54, 238, 50, 28)
		}
		c.text(x, 300, foot)
	}
	half(20, "before: 6 sorted runs", "A lookup asks 6 files at most.", func(x int) {
		for i, of := range [][2]int{{20, 160}, {4, 150}, {40, 160}, {10, 170}} {
			c.box("hot", x+of[0], 58+i*26, of[1], 20)
		}
		c.text(x+214, 73, "~newest", "~run")
	}, func(x int) {
		c.box("hot", x, 183, 60, 28)
		c.box("hot", x+64, 183, 60, 28)
		c.box("hot", x+128, 183, 76, 28)
		c.box("disk", x+216, 183, 50, 28)
	})
	c.line("arrow", 364, 197, 392, 197)
	half(404, "after: 2 sorted runs", "A lookup asks 2 files at most.", func(x int) {
		c.box("gone", x, 58, 266, 98, "~empty", "~The old files go when the last", "~reader of the old version has.")
	}, func(x int) {
		for i := range 4 {
			c.box("hot", x+i*53, 183, 49, 28)
		}
		c.box("disk", x+216, 183, 50, 28)
	})
	c.text(20, 318, "~orange: inputs, and the files that they became; green: files that nothing has touched")
	return c
}

// references shows what keeps what: kv/read_state.go, internal/memtable, internal/version, internal/values.
func references() *canvas {
	c := &canvas{width: pageWidth, height: 400, title: "What refers to what in a store",
		description: "A reader pins a read state, which has memtables and a version. A version keeps tables and blob " +
			"files. A memtable names its log, a table the blob files that it has values in. CURRENT names the " +
			"manifest; that names the files of the newest version and the first log that recovery needs."}
	c.text(20, 30, "*in memory")
	c.box("plain", 130, 16, 130, 34, "lookup, iterator")
	c.box("plain", 590, 16, 140, 34, "older iterator")
	c.box("mem", 130, 82, 130, 34, "read state")
	c.box("mem", 590, 76, 140, 44, "older version", "~of its read state")
	c.box("mem", 20, 150, 120, 44, "memtable", "~takes writes")
	c.box("mem", 160, 150, 120, 44, "memtable", "~is being flushed")
	c.box("mem", 400, 150, 130, 44, "newest version")
	c.line("line", 14, 222, 746, 222)
	c.text(20, 244, "*on disk")
	c.box("disk", 20, 262, 120, 34, "`000018.wal")
	c.box("disk", 160, 262, 120, 34, "`000015.wal")
	c.box("disk", 320, 262, 90, 34, "`000014.sst")
	c.box("disk", 440, 262, 90, 34, "`000012.sst")
	c.box("gone", 590, 262, 140, 34, "`000009.sst")
	c.box("disk", 320, 346, 210, 34, "`000011.blob")
	c.box("disk", 20, 346, 84, 34, "`CURRENT")
	c.box("disk", 134, 346, 146, 34, "`MANIFEST-000016")

	c.line("arrow", 195, 50, 195, 82)
	c.line("arrow", 660, 50, 660, 76)
	c.line("arrow", 160, 116, 100, 150)
	c.line("arrow", 205, 116, 215, 150)
	c.line("arrow", 260, 105, 430, 150)
	c.line("arrow", 430, 194, 370, 262)
	c.line("arrow", 475, 194, 485, 262)
	c.line("arrow", 500, 194, 560, 230, 560, 363, 530, 363)
	c.line("arrow", 660, 120, 660, 262)
	c.line("arrow", 620, 120, 520, 262)
	c.line("names", 80, 194, 80, 262)
	c.line("names", 220, 194, 220, 262)
	c.line("names", 365, 296, 380, 346)
	c.line("names", 485, 296, 470, 346)
	c.line("names", 104, 363, 134, 363)
	c.line("names", 220, 346, 220, 296)
	c.line("names", 280, 363, 320, 363)
	c.line("names", 262, 346, 330, 296)
	c.text(586, 318, "~in no newer version:", "~removed with the last", "~reader of the older one")
	c.line("arrow", 556, 384, 590, 384)
	c.line("names", 650, 384, 684, 384)
	c.text(596, 388, "~keeps")
	c.text(690, 388, "~names")
	return c
}

// recovery shows what Open reads of a store in a directory: kv/open.go, kv/recover.go, internal/replay.
func recovery() *canvas {
	c := &canvas{width: pageWidth, height: 312, title: "What recovery reads, in order",
		description: "Open locks the directory, then reads CURRENT, the manifest, and the sizes of tables and blob " +
			"files. It reads the logs from the first one that the manifest needs into memtables. It flushes " +
			"these to level 0, starts a new manifest and log, and removes files that nothing names."}
	const w, h, step = 165, 96, 185
	steps := []struct {
		style string
		lines []string
	}{
		{"plain", []string{"*1", "`LOCK", "one writer;", "else ErrLocked"}},
		{"disk", []string{"*2", "`CURRENT", "format version, and", "the manifest in force"}},
		{"disk", []string{"*3", "`MANIFEST-000016", "levels, blob files,", "the first log needed"}},
		{"disk", []string{"*4", "`*.sst  *.blob", "there, with the listed", "size; not opened yet"}},
		{"disk", []string{"*5", "`000015.wal, …", "oldest first, and blob", "files of their handles"}},
		{"mem", []string{"*6", "memtables", "of these logs, flushed", "to level 0"}},
		{"hot", []string{"*7", "new manifest, new log", "then the store takes", "reads and writes"}},
		{"plain", []string{"*8", "cleaner", "removes files that", "nothing names"}},
	}
	for i, s := range steps {
		x, y := 20+i%4*step, 40+i/4*(h+44)
		c.box(s.style, x, y, w, h, s.lines...)
		if i%4 > 0 {
			c.line("arrow", x-step+w, y+h/2, x, y+h/2)
		}
	}
	c.line("arrow", 20+3*step+w/2, 40+h, 20+3*step+w/2, 40+h+22, 20+w/2, 40+h+22, 20+w/2, 84+h)
	c.text(20, 26, "~Steps 2 to 5 change nothing on the disk.")
	c.text(20, 298, "~A store that is opened read-only reads the memtables of 6 from memory, and leaves out the rest.")
	return c
}
