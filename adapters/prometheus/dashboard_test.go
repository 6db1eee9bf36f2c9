package siftprometheus_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	siftprometheus "github.com/siftkv/siftkv/adapters/prometheus"
)

type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, RefID string }
	}
	Templating struct {
		List []struct{ Name, Query string }
	}
}

func loadDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// queries returns those of all panels.
func queries(t *testing.T) (all []string) {
	t.Helper()
	for _, p := range loadDashboard(t).Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	require.Greater(t, len(all), 20)
	return all
}

var (
	metricName = regexp.MustCompile(`\bsiftkv_\w+`)
	selector   = regexp.MustCompile(`\{[^}]*\}`)
	labelName  = regexp.MustCompile(`(\w+)(?:=~?|!~?=?)"`)
)

// Every query names metrics and labels that a scrape has, and asks of counters how fast they go.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	f := parse(t, scrape(t, pedantic(t,
		siftprometheus.NewCollector(openStore(t, inObjects()), client.Labels{"store": "a"}))))
	labels := map[string]bool{"le": true}
	for _, family := range f {
		for _, l := range family.Metric[0].Label {
			labels[l.GetName()] = true
		}
	}
	asked := append(queries(t), "")
	for _, v := range loadDashboard(t).Templating.List {
		asked = append(asked, v.Query)
	}
	for _, q := range asked {
		for _, name := range metricName.FindAllString(q, -1) {
			family, isBucket := strings.CutSuffix(name, "_bucket")
			for _, suffix := range []string{"_sum", "_count"} {
				if base, ok := strings.CutSuffix(name, suffix); ok && f[base] != nil {
					family, isBucket = base, true
				}
			}
			require.Contains(t, f, family, q)
			kind := f[family].GetType()
			require.Equal(t, isBucket, kind == dto.MetricType_HISTOGRAM, q)
			if kind != dto.MetricType_GAUGE {
				require.Regexp(t, `rate\(`+name+`\{`, q)
			}
		}
		for _, s := range selector.FindAllString(q, -1) {
			for _, l := range labelName.FindAllStringSubmatch(s, -1) {
				require.True(t, labels[l[1]], "%s: no label %s", q, l[1])
			}
		}
	}
}

// Panels have titles and queries, and none lies over another.
func TestDashboardIsWellFormed(t *testing.T) {
	d := loadDashboard(t)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Title)
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			require.NotEmpty(t, metricName.FindString(target.Expr), p.Title)
			require.False(t, refs[target.RefID], p.Title)
			refs[target.RefID] = true
		}
		g := p.GridPos
		require.LessOrEqual(t, g.X+g.W, 24, p.Title)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
