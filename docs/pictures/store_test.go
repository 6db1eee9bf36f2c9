package pictures

import "fmt"

// compaction shows what a compaction of level 0 of a leveled store does. Files are where their keys are.
func compaction() *canvas {
	c := &canvas{height: 494, title: "Levels and runs before and after a compaction of level 0",
		description: "Before: four overlapping runs in level 0, four files of one run in level 5 and five " +
			"in level 6. The compaction merges level 0 and the three files of level 5 that share keys with " +
			"it. After: level 0 is empty, level 5 has four new files and one old one, level 6 is as it was. A " +
			"lookup asks two files instead of six."}
	half := func(y int, head, foot string, level0, level5 func(x, y int)) {
		c.text(16, y+26, "*"+head)
		c.write(464, y+26, "end", foot, nil)
		c.text(90, y+46, "~keys →")
		for i, name := range []string{"level 0", "level 5", "level 6"} {
			c.text(16, y+[]int{102, 172, 208}[i], name)
		}
		level0(90, y+54)
		level5(90, y+154)
		for i := range 5 {
			c.box("disk", 90+i*76, y+190, 70, 26)
		}
	}
	half(0, "before: 6 sorted runs", "A lookup asks 6 files at most.", func(x, y int) {
		for i, of := range [][2]int{{26, 220}, {6, 206}, {54, 220}, {14, 234}} {
			c.box("hot", x+of[0], y+i*23, of[1], 18)
		}
		c.text(x+286, y+14, "~newest run")
	}, func(x, y int) {
		c.box("hot", x, y, 84, 26)
		c.box("hot", x+90, y, 84, 26)
		c.box("hot", x+180, y, 104, 26)
		c.box("disk", x+300, y, 74, 26)
	})
	c.line("arrow", 210, 222, 210, 250)
	half(226, "after: 2 sorted runs", "A lookup asks 2 files at most.", func(x, y int) {
		c.box("gone", x, y, 374, 87, "~empty", "~The old files go when the last reader", "~of the old version has.")
	}, func(x, y int) {
		for i := range 4 {
			c.box("hot", x+i*73, y, 67, 26)
		}
		c.box("disk", x+300, y, 74, 26)
	})
	c.text(16, 464, "~orange: inputs, and the files that they became", "~green: files that nothing has touched")
	return c
}

// references shows what keeps what: kv/read_state.go, internal/memtable, internal/version, internal/values.
func references() *canvas {
	c := &canvas{height: 464, title: "What refers to what in a store",
		description: "A reader pins a read state, which has memtables and a version. A version keeps tables and blob " +
			"files. A memtable names its log, a table the blob files that it has values in. CURRENT names the " +
			"manifest; that names the files of the newest version and the first log that recovery needs."}
	c.text(16, 30, "*in memory")
	c.box("plain", 116, 16, 130, 34, "lookup, iterator")
	c.box("plain", 366, 16, 98, 34, "older iterator")
	c.box("mem", 116, 82, 130, 34, "read state")
	c.box("mem", 366, 76, 98, 44, "older version", "~of its read state")
	c.box("mem", 16, 150, 84, 44, "memtable", "~takes writes")
	c.box("mem", 108, 150, 84, 44, "memtable", "~being flushed")
	c.box("mem", 228, 150, 112, 44, "newest version")
	c.line("line", 14, 222, 466, 222)
	c.text(16, 244, "*on disk")
	c.box("disk", 16, 262, 84, 34, "`000018.wal")
	c.box("disk", 108, 262, 84, 34, "`000015.wal")
	c.box("disk", 200, 262, 82, 34, "`000014.sst")
	c.box("disk", 288, 262, 82, 34, "`000012.sst")
	c.box("gone", 384, 262, 82, 34, "`000009.sst")
	c.box("disk", 284, 346, 110, 34, "`000011.blob")
	c.box("disk", 16, 346, 74, 34, "`CURRENT")
	c.box("disk", 118, 346, 134, 34, "`MANIFEST-000016")

	c.line("arrow", 181, 50, 181, 82)
	c.line("arrow", 415, 50, 415, 76)
	c.line("arrow", 140, 116, 80, 150)
	c.line("arrow", 175, 116, 155, 150)
	c.line("arrow", 225, 116, 265, 150)
	c.line("arrow", 265, 194, 245, 262)
	c.line("arrow", 295, 194, 315, 262)
	c.line("arrow", 325, 194, 377, 240, 377, 346)
	c.line("arrow", 425, 120, 425, 262)
	c.line("arrow", 390, 120, 345, 262)
	c.line("names", 82, 194, 82, 262)
	c.line("names", 150, 194, 150, 262)
	c.line("names", 250, 296, 305, 346)
	c.line("names", 330, 296, 335, 346)
	c.line("names", 90, 363, 118, 363)
	c.line("names", 150, 346, 150, 296)
	c.line("names", 205, 346, 225, 296)
	c.line("names", 252, 363, 284, 363)
	c.line("arrow", 16, 406, 50, 406)
	c.line("names", 110, 406, 144, 406)
	c.text(56, 410, "~keeps")
	c.text(150, 410, "~names")
	c.text(16, 432, "~000009.sst is in no newer version: it is removed with the last", "~reader of the older one.")
	return c
}

// recovery shows what Open reads of a store in a directory: kv/open.go, kv/recover.go, internal/replay.
func recovery() *canvas {
	c := &canvas{height: 480, title: "What recovery reads, in order",
		description: "Open locks the directory, then reads CURRENT, the manifest, and the sizes of tables and blob " +
			"files. It reads the logs from the first one that the manifest needs into memtables. It flushes " +
			"these to level 0, starts a new manifest and log, and removes files that nothing names."}
	const h, step = 40, 50
	steps := []struct{ style, what, first, then string }{
		{"plain", "`LOCK", "one writer; else ErrLocked", ""},
		{"disk", "`CURRENT", "format version,", "and the manifest in force"},
		{"disk", "`MANIFEST-000016", "levels, blob files,", "the first log needed"},
		{"disk", "`*.sst  *.blob", "there, with the listed size;", "not opened yet"},
		{"disk", "`000015.wal, …", "oldest first, and blob files", "of their handles"},
		{"mem", "memtables", "of these logs, flushed", "to level 0"},
		{"hot", "new manifest, new log", "then the store takes", "reads and writes"},
		{"plain", "cleaner", "removes files that nothing names", ""},
	}
	c.text(16, 26, "~Steps 2 to 5 change nothing on the disk.")
	for i, s := range steps {
		y := 38 + i*step
		c.box(s.style, 16, y, 448, h)
		c.text(28, y+25, fmt.Sprintf("*%d", i+1))
		c.text(50, y+25, s.what)
		if s.then == "" {
			c.text(212, y+25, s.first)
		} else {
			c.text(212, y+16, s.first, s.then)
		}
		if i > 0 {
			c.line("arrow", 110, y-step+h, 110, y)
		}
	}
	c.text(16, 448, "~A store that is opened read-only reads the memtables of 6 from",
		"~memory, and leaves out the rest.")
	return c
}
