package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/golden"
)

// write returns the page of the samples.
func write(t *testing.T, title string) string {
	t.Helper()
	var out bytes.Buffer
	d, err := NewData(title, &results.Set{Cells: celltest.Samples()})
	require.NoError(t, err)
	require.NoError(t, WritePage(&out, d, celltest.Samples()))
	return out.String()
}

// nodes returns the elements of a page in their order.
func nodes(t *testing.T, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	return slices.Collect(root.Descendants())
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestThePageNeedsNoNetwork(t *testing.T) {
	policy := ""
	for _, n := range nodes(t, write(t, "a page")) {
		if n.Type != html.ElementNode {
			continue
		}
		require.NotContains(t, []string{"iframe", "object", "embed", "base", "form", "audio", "video", "img"}, n.Data)
		for _, name := range []string{"src", "srcset", "action", "poster", "data"} {
			require.Empty(t, attribute(n, name), "<%s %s>", n.Data, name)
		}
		if href := attribute(n, "href"); href != "" {
			require.Regexp(t, `^(#|data:)`, href)
		}
		if attribute(n, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(n, "content")
		}
	}
	require.Contains(t, policy, "default-src 'none'", "nothing is fetched even if a program tries")
	require.NotContains(t, policy, "http")
	require.NotContains(t, policy, "*")
	for name, text := range map[string]string{"js": program, "page.css": style, "page.html": skeleton} {
		require.NotRegexp(t, regexp.MustCompile(
			`https?:|//[a-z]+\.|fetch\(|XMLHttpRequest|WebSocket|@import|url\(|innerHTML|eval\(`), text, name)
	}
}

func TestTheDataGoesRound(t *testing.T) {
	texts := map[string]string{}
	for _, n := range nodes(t, write(t, "a page")) {
		if n.Type == html.ElementNode && n.Data == "script" {
			texts[attribute(n, "id")] = n.FirstChild.Data
		}
	}
	var d Data
	require.NoError(t, json.Unmarshal([]byte(texts["data"]), &d))
	var cells []*cell.Result
	require.NoError(t, json.Unmarshal([]byte(texts["cells"]), &cells))
	require.Equal(t, []string{"a </script> & a warning"}, d.Warnings, "text that looks like the end of the element")
	set := celltest.Samples()
	want, err := bench.JSON(set)
	require.NoError(t, err)
	got, err := bench.JSON(cells)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "the results are in the page as they are in files")
	require.Equal(t, report.Grids(set), d.Grids)
	require.Len(t, d.Charts, 10)
	require.Len(t, d.Labels, len(set))
	require.Contains(t, d.CSV, "p99.99-ns")
}

func TestTheTitleIsText(t *testing.T) {
	for _, n := range nodes(t, write(t, `<b onclick="x">`)) {
		if n.Type == html.ElementNode {
			require.NotEqual(t, "b", n.Data)
			if n.Data == "title" || n.Data == "h1" {
				require.Equal(t, `<b onclick="x">`, n.FirstChild.Data)
			}
		}
	}
}

// TestPageGolden holds the structure of the page: its elements, without text.
func TestPageGolden(t *testing.T) {
	var out strings.Builder
	for _, n := range nodes(t, write(t, "a page")) {
		if n.Type != html.ElementNode {
			continue
		}
		for p := n.Parent; p != nil && p.Type == html.ElementNode; p = p.Parent {
			out.WriteString("  ")
		}
		out.WriteString(n.Data)
		for _, name := range []string{"id", "class", "role", "type", "aria-label"} {
			if v := attribute(n, name); v != "" {
				out.WriteString(" " + name + "=" + v)
			}
		}
		out.WriteByte('\n')
	}
	golden.File(t, "testdata/page.txt", out.String())
}

// TestTheProgramFindsItsElements holds the page's program to the skeleton.
func TestTheProgramFindsItsElements(t *testing.T) {
	used := regexp.MustCompile(`(?:byId|getElementById)\("([a-z]+)"\)`).FindAllStringSubmatch(program, -1)
	require.Greater(t, len(used), 10)
	for _, m := range used {
		require.Contains(t, skeleton, `id="`+m[1]+`"`)
	}
}

func TestTheLibraryIsWhatWasPinned(t *testing.T) {
	sums, err := os.ReadFile("echarts/SHA256SUMS")
	require.NoError(t, err)
	lines := strings.Fields(string(sums))
	require.Len(t, lines, 6)
	for i := 0; i < len(lines); i += 2 {
		data, err := os.ReadFile("echarts/" + lines[i+1])
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, lines[i], hex.EncodeToString(sum[:]), lines[i+1])
	}
	require.NotContains(t, library, "</script", "it would end the element")
	require.Contains(t, library, "Licensed to the Apache Software Foundation")
}

func TestAPageOfRowsSaysWhatWasMeasured(t *testing.T) {
	t.Parallel()
	r := tidy.New("filters", "Filters on their own", nil, environ.Environment{})
	r.Notes = []string{"of this run"}
	r.Add(tidy.Of("keys", 10, "filter", "bloom:10"), "size", "bits/key", 10)
	d, err := NewData("a page", &results.Set{Rows: []*tidy.Result{r}})
	require.NoError(t, err)
	require.Equal(t, []string{"Filters on their own"}, d.About)
	require.Equal(t, report.TidyNotes(r), d.Notes)
	require.Greater(t, len(d.Notes), 1)
	require.Equal(t, "filter,keys,metric,repetition,value,unit\nbloom:10,10,size,0,10,bits/key\n", d.CSV)
	d, err = NewData("a page", &results.Set{Rows: []*tidy.Result{r, r}})
	require.NoError(t, err)
	require.Empty(t, d.CSV, "of two results there is no one table")
}
