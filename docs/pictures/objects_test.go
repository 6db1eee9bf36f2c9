package pictures

import "fmt"

// sequence shows two writers of a sequence of entries: internal/sequence.
func sequence() *canvas {
	c := &canvas{height: 430, title: "Entries, fences and two writers",
		description: "Slot 1 has the fence of writer A, slots 2 to 4 its entries. Writer B lists the end, puts its " +
			"fence into slot 5 and reads the newest entry. A's next entry needs slot 5, finds the fence there " +
			"and stops with ErrFenced. B goes on in slots 6 and 7. Later, data below the newest list is " +
			"deleted; fences stay."}
	const x0, step, w, h, y = 16, 56, 52, 62, 128
	slot := func(n int, style string, lines ...string) {
		c.box(style, x0+(n-1)*step, y, w, h, append([]string{fmt.Sprintf("~slot %d", n)}, lines...)...)
	}
	mid := func(n int) int { return x0 + (n-1)*step + w/2 }
	c.box("plain", x0, 16, 300, 62, "*writer A, epoch 1", "puts an entry for slot 5: it is taken.",
		"A reads B's fence and stops: ErrFenced.")
	slot(1, "hot", "*fence A")
	slot(2, "disk", "list, log")
	slot(3, "disk", "log")
	slot(4, "disk", "list edit")
	slot(5, "hot", "*fence B")
	slot(6, "disk", "list, log")
	slot(7, "disk", "log")
	c.box("gone", x0+7*step, y, w, h, "~slot 8", "~free")
	for n := 1; n <= 4; n++ {
		c.line("line", mid(n), 78, mid(n), y)
	}
	c.line("arrow", mid(5), 78, mid(5), y-2)
	c.text(mid(5)+10, 106, "PUT if absent: refused")
	c.box("plain", 104, 236, 360, 78, "*writer B, epoch 5: the slot of its fence",
		"LIST shows the end; PUT if absent of the fence;", "GET of the newest entry,",
		"which leads to the list and logs")
	for n := 5; n <= 7; n++ {
		c.line("line", mid(n), y+h, mid(n), 236)
	}
	c.text(x0, 208, "~Fences are never deleted:", "~A finds B's, however late it is.")
	c.text(x0, 338, "*after Objects.Grace")
	for n, style := range []string{"hot", "gone", "gone", "gone", "hot", "disk", "disk", "gone"} {
		name := []string{"fence A", "~deleted", "~deleted", "~deleted", "fence B", "list, log", "log", "~free"}[n]
		c.box(style, x0+n*step, 348, w, 30, name)
	}
	c.text(x0, 400, "~An entry has the slot of the newest list of files, so the newest",
		"~entry leads to everything that is needed.")
	return c
}

// branches shows which files a checkpoint and a branch share with the branch that they were made from:
// docs/adr/0024-checkpoints-and-branches-share-files.md.
func branches() *canvas {
	c := &canvas{height: 372, title: "Branches that share files",
		description: "Columns are files, rows are lists that name them. Files 12 to 15 are of the main branch, 18 of " +
			"the branch trial. The checkpoint, the pin of trial and its list name 12 to 14. The newest list " +
			"of main names 12, 13 and 15, which replaced 14. The checkpoint and the pin keep file 14."}
	columns := []int{258, 302, 346, 390, 440}
	c.text(238, 28, "*files of main", "`sst/")
	c.write(464, 28, "end", "*file of trial", nil)
	c.write(464, 45, "end", "`data/trial-…/sst/", nil)
	for i, name := range []string{"12", "13", "14", "15", "18"} {
		style := "disk"
		if name == "14" {
			style = "hot"
		}
		c.box(style, columns[i]-20, 60, 40, 26, name)
		c.line("line", columns[i], 86, columns[i], 250)
	}
	rows := []struct {
		name, note string
		files      []int
	}{
		{"main: newest list of files", "~a compaction has replaced 14 by 15", []int{0, 1, 3}},
		{"checkpoint of main", "~never changes", []int{0, 1, 2}},
		{"pin of the branch trial", "~what trial began with", []int{0, 1, 2}},
		{"trial: newest list of files", "~18 is a flush of its own writer", []int{0, 1, 2, 4}},
	}
	for i, r := range rows {
		y := 108 + i*40
		c.text(16, y, r.name, r.note)
		c.line("line", 232, y, columns[r.files[len(r.files)-1]], y)
		for _, f := range r.files {
			c.dot(columns[f], y)
		}
	}
	c.middle(324, 268, "main's writer", "deletes these")
	c.middle(428, 268, "trial's deletes", "this one")
	c.text(16, 308, "~A file is deleted when its branch's newest list omits it, the",
		"~grace is over, and a later listing of the checkpoints names it",
		"~nowhere. File 14 stays until checkpoint and pin are gone.", "~No file was copied.")
	return c
}
