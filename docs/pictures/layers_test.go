package pictures

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

// layers shows floors.
func layers() *canvas {
	c := &canvas{width: pageWidth, title: "The layers of the root module",
		description: "Seven layers: programs, tools, the store, its parts, files and logs, indexes and filters, " +
			"ground. Packages import those of layers below. A column has the packages of a store in an object " +
			"store, which a program without kv/objects does not link."}
	const left, right, chip, gap, column, columnWidth = 112, 585, 22, 8, 601, 144
	c.text(left, 25, "~Imports point down: a package knows those below it.")
	c.text(column, 25, "~linked with kv/objects")
	y, above := 38, 0 // above is the foot of the column's last package
	for _, f := range floors {
		type row []struct {
			name string
			x, w int
		}
		var rows []row
		x := right
		for _, name := range f.packages {
			w := textWidth("c", name) + 10
			if x+w > right-gap {
				rows, x = append(rows, nil), left
			}
			last := &rows[len(rows)-1]
			*last = append(*last, struct {
				name string
				x, w int
			}{name, x, w})
			x += w + gap
		}
		h := len(rows)*(chip+gap) + gap
		c.box("plain", 14, y, right-14, h)
		c.text(24, y+h/2+5, "*"+f.name)
		for n, r := range rows {
			for _, p := range r {
				style := "ground"
				if p.name == "kv" {
					style = "hot"
				}
				c.box(style, p.x, y+gap+n*(chip+gap), p.w, chip, "`"+p.name)
			}
		}
		for _, name := range f.objects {
			top := y + (h-chip)/2
			c.box("mem", column, top, columnWidth, chip, "`"+name)
			if above > 0 {
				c.line("arrow", column+columnWidth/2, above, column+columnWidth/2, top)
			}
			above = top + chip
		}
		y += h + 8
	}
	c.height = y + 6
	return c
}
