package pictures

import "strings"

// A floor is packages of which none imports one of a floor above it.
type floor struct {
	name     string
	packages []string // of the store
	objects  []string // what only stores in an object store link
}

// floors are the layers of the root module, from the top.
var floors = []floor{
	{"programs", []string{"cmd/siftkv", "examples/embed", "internal/storecmd"}, nil},
	{"tools", []string{"internal/doctor", "kv/advice"}, []string{"kv/objects"}},
	{"store", []string{"kv"}, []string{"internal/remote"}},
	{"parts of it", []string{"internal/commit", "internal/cursor", "internal/job", "internal/replay",
		"internal/compaction", "internal/iterator", "internal/values", "internal/version", "internal/tablecache",
		"internal/memtable"}, nil},
	{"file, log", []string{"sstable", "internal/sstable", "internal/blob", "internal/wal", "internal/manifest"},
		[]string{"internal/sequence"}},
	{"index, filter", []string{"blockindex", "filterpolicy"}, []string{"objstore"}},
	{"ground", []string{"internal/base", "internal/vfs", "internal/cache", "internal/keytext"}, nil},
}

// layers shows floors. Only packages that are not below internal/ have a colour.
func layers() *canvas {
	c := &canvas{title: "The layers of the root module",
		description: "Seven layers: programs, tools, the store, its parts, files and logs, indexes and filters, " +
			"ground. Packages import those of layers below. A column has the packages of a store in an object " +
			"store, which a program without kv/objects does not link."}
	const left, right, chip, gap, column = 108, 358, 22, 8, 420
	short := func(path string) string { return strings.TrimPrefix(path, "internal/") }
	chipWidth := func(path string) int { return textWidth("c", short(path)) + 10 }
	draw := func(path string, x, y int) {
		style := "disk"
		switch {
		case short(path) != path:
			style = "ground"
		case path == "kv":
			style = "hot"
		}
		c.box(style, x, y, chipWidth(path), chip, "`"+short(path))
	}
	c.text(16, 26, "~Imports point down: a package knows those below it.",
		"~Boxes without a colour are below internal/.")
	c.middle(column, 26, "~linked with", "~kv/objects")
	y, above := 56, 0 // above is the foot of the column's last package
	for _, f := range floors {
		rows, x := [][]string{nil}, left
		for _, path := range f.packages {
			if x+chipWidth(path) > right {
				rows, x = append(rows, nil), left
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], path)
			x += chipWidth(path) + gap
		}
		h := len(rows)*(chip+gap) + gap
		c.box("plain", 16, y, right+gap-16, h)
		c.text(24, y+h/2+5, "*"+f.name)
		for n, row := range rows {
			x := left
			for _, path := range row {
				draw(path, x, y+gap+n*(chip+gap))
				x += chipWidth(path) + gap
			}
		}
		for _, path := range f.objects {
			top := y + (h-chip)/2
			draw(path, column-chipWidth(path)/2, top)
			if above > 0 {
				c.line("arrow", column, above, column, top)
			}
			above = top + chip
		}
		y += h + 8
	}
	c.height = y + 8
	return c
}
