package pictures

import (
	"cmp"
	"encoding/xml"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
)

// pictures has all of them, by the names of their files.
var pictures = map[string]func() *canvas{
	"blocks.svg":     blocks,
	"branches.svg":   branches,
	"compaction.svg": compaction,
	"laboratory.svg": laboratory,
	"layers.svg":     layers,
	"lookup.svg":     lookup,
	"rates.svg":      rates,
	"reads.svg":      reads,
	"recovery.svg":   recovery,
	"references.svg": references,
	"sequence.svg":   sequence,
}

// A picture in the tree is what its function draws, is small, is XML, and is shown by a page.
func TestGoldenPictures(t *testing.T) {
	var pages strings.Builder
	places, err := filepath.Glob("../*.md")
	require.NoError(t, err)
	for _, place := range places {
		page, err := os.ReadFile(place)
		require.NoError(t, err)
		pages.Write(page)
	}
	for name, draw := range pictures {
		made := draw().svg()
		require.LessOrEqual(t, len(made), 30<<10, name)
		d := xml.NewDecoder(strings.NewReader(string(made)))
		for err == nil {
			_, err = d.Token()
		}
		require.Truef(t, errors.Is(err, io.EOF), "%s: %v", name, err)
		err = nil
		golden.File(t, name, made)
		require.True(t, strings.Contains(pages.String(), "](pictures/"+name+")"), "no page shows "+name)
	}
	files, err := filepath.Glob("*.svg")
	require.NoError(t, err)
	require.Len(t, files, len(pictures))
}

// A telephone with 360 pixels shows all texts at 9 or more.
func TestTextsAreLargeEnough(t *testing.T) {
	sizes := regexp.MustCompile(`(\d+)px`).FindAllStringSubmatch(style+chartStyle, -1)
	require.NotEmpty(t, sizes)
	for _, size := range sizes {
		pixels, err := strconv.Atoi(size[1])
		require.NoError(t, err)
		require.GreaterOrEqual(t, pixels*360, 9*width)
	}
}

// Texts fit in their boxes and in the picture, and do not cover each other.
func TestTextsHaveRoom(t *testing.T) {
	for name, draw := range pictures {
		c := draw()
		c.svg()
		for i, l := range c.texts {
			in := area{6, 6, width - 12, c.height - 12}
			if l.in != nil {
				in = *l.in
			}
			if l.x < in.x || l.y < in.y || l.x+l.w > in.x+in.w || l.y+l.h > in.y+in.h {
				t.Errorf("%s: %q does not fit: it takes %v of %v", name, l.text, l.area, in)
			}
			for _, o := range c.texts[:i] {
				if l.overlaps(o.area) {
					t.Errorf("%s: %q and %q cover each other", name, l.text, o.text)
				}
			}
			for _, b := range c.boxes {
				if l.in == nil && l.overlaps(b) && !b.holds(l.area) {
					t.Errorf("%s: %q is on the edge of a box", name, l.text)
				}
			}
		}
	}
}

func (a area) overlaps(b area) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

func (a area) holds(b area) bool {
	return a.x <= b.x && b.x+b.w <= a.x+a.w && a.y <= b.y && b.y+b.h <= a.y+a.h
}

// No package of a floor imports one of a floor above it, and kv imports nothing of the column of object stores.
func TestLayersAreThoseOfImports(t *testing.T) {
	const module = "github.com/siftkv/siftkv/"
	var above, column []string
	for _, f := range floors {
		column = append(column, f.objects...)
	}
	for i, f := range floors {
		for _, name := range slices.Concat(f.packages, f.objects) {
			imports := importsOf(t, filepath.Join("../..", name))
			require.NotEmpty(t, imports, name)
			for _, other := range above {
				require.NotContains(t, imports, module+other, name)
			}
			if i >= 2 && slices.Contains(f.packages, name) {
				for _, other := range column {
					require.NotContains(t, imports, module+other, name)
				}
			}
		}
		above = slices.Concat(above, f.packages, f.objects)
	}
}

// The table of packages has each package of the picture, except those of object stores, in the layer of its floor.
func TestLayersAreThoseOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../architecture.md")
	require.NoError(t, err)
	layers := map[string]string{} // by package
	layer := ""
	table, _, found := strings.Cut(string(page), "\nBelow the root module")
	require.True(t, found)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			layer = cmp.Or(strings.TrimSpace(cells[1]), layer)
			for i, name := range strings.Split(cells[2], "`") {
				if i%2 == 1 {
					layers[strings.TrimSuffix(name, "/...")] = layer
				}
			}
		}
	}
	floorOf := map[string]string{"parts of the store": "parts of it", "file": "file, log", "log": "file, log",
		"index": "index, filter", "filter": "index, filter"}
	for _, f := range floors {
		for _, name := range f.packages {
			layer := cmp.Or(layers[name], layers[strings.TrimPrefix(name, "internal/")])
			require.Equal(t, f.name, cmp.Or(floorOf[layer], layer), name)
		}
	}
}

// importsOf returns what the package in a directory imports, without its tests.
func importsOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			paths = append(paths, imported)
		}
	}
	return paths
}
