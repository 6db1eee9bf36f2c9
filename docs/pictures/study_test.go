package pictures

// The charts of docs/study.md. Their numbers are counts of the sweeps that docs/study/run.sh makes, as
// docs/study/tables.sh prints them.

const (
	leveled, lazy, tiered = "k1", "k2", "k3"
	spread                = " few" // over the levels, by a budget
)

// blocks is of levels.yaml.
func blocks() *canvas {
	return (&chart{
		title: "A few bits per key replace nearly every read",
		description: "Blocks read by a lookup of an absent key, by filter memory, for three styles of compaction. " +
			"Without filters 5 to 9 blocks; with 10 bits per key 0.02 to 0.2.",
		up: axis{name: "blocks read by a lookup of an absent key", log: true, ticks: []tick{
			{0.003, "0.003"}, {0.01, "0.01"}, {0.03, "0.03"}, {0.1, "0.1"}, {0.3, "0.3"}, {1, "1"}, {3, "3"},
			{10, "10"}}},
		across: axis{name: "filter memory, bits per key", ticks: []tick{
			{0, "no filter"}, {4, "4"}, {8, "8"}, {12, "12"}, {16, "16"}, {20, "20"}}},
		lines: []curve{
			{"", leveled, points{{0, 4.82}, {6.77, 0.26}, {8.96, 0.0966}, {11.16, 0.0359},
				{13.41, 0.0142}, {15.62, 0.00546}}},
			{"", lazy, points{{0, 8.97}, {7.55, 0.546}, {10, 0.21}, {12.45, 0.079},
				{14.90, 0.0303}, {17.36, 0.0119}}},
			{"", tiered, points{{0, 6.98}, {8.04, 0.385}, {10.60, 0.149}, {13.17, 0.0563},
				{15.73, 0.0218}, {18.29, 0.00828}}},
			{"", leveled + spread, points{{6.20, 0.102}, {8.19, 0.0427}, {10.12, 0.0182}, {12.21, 0.00731}}},
			{"", lazy + spread, points{{7.36, 0.143}, {9.45, 0.0676}, {11.54, 0.0327}, {13.63, 0.0163}}},
			{"", tiered + spread, points{{3.90, 0.573}, {4.77, 0.445}, {5.64, 0.343}, {6.51, 0.263}}},
		},
		keys: []curve{
			{name: "leveled", style: leveled}, {name: "lazy-leveled", style: lazy}, {name: "tiered", style: tiered},
			{name: "equal bits in all levels", style: "k6"}, {name: "a budget, spread over them", style: "k6 few"}},
	}).draw()
}

// reads is of budget.yaml.
func reads() *canvas {
	return (&chart{
		title: "A budget helps most where the cache is small",
		description: "Blocks read from disk by a lookup of an absent key, by the size of the cache, with equal bits " +
			"and with a budget of about as many. With 10 bits per key the lines meet at a cache of 4 MiB, a quarter " +
			"of the data.",
		up: axis{name: "blocks read from disk by a lookup of an absent key", log: true, ticks: []tick{
			{0.01, "0.01"}, {0.02, "0.02"}, {0.05, "0.05"}, {0.1, "0.1"}, {0.15, "0.15"}}},
		across: axis{name: "cache (the files take 16.7 MiB)", log: true, ticks: []tick{
			{1.0 / 16, "64 KiB"}, {1, "1 MiB"}, {2, "2 MiB"}, {4, "4 MiB"}, {8, "8 MiB"}}},
		lines: []curve{
			{"equal, bloom:7", "k2", points{{1.0 / 16, 0.112}, {1, 0.0581}, {2, 0.0485}, {4, 0.0384}, {8, 0.0277}}},
			{"spread, bloom:8", "k2 few", points{{1.0 / 16, 0.0426}, {1, 0.041}, {2, 0.0391}, {4, 0.0356},
				{8, 0.0285}}},
			{"equal, bloom:9", "k1", points{{1.0 / 16, 0.0443}, {1, 0.0233}, {2, 0.0192}, {4, 0.0150}, {8, 0.0110}}},
			{"spread, bloom:10", "k1 few", points{{1.0 / 16, 0.0182}, {1, 0.0173}, {2, 0.0164}, {4, 0.0146},
				{8, 0.0114}}},
		},
	}).draw()
}

// rates is of bits.yaml.
func rates() *canvas {
	return (&chart{
		title: "What a bit buys",
		description: "False-positive rate by bits per key. Ribbon filters are at the bound of information theory, " +
			"fuse next to them, cuckoo, Bloom and blocked Bloom above. Pebble's Bloom filter gains little above " +
			"12 bits.",
		up: axis{name: "false positives, % of absent keys", log: true, ticks: []tick{
			{0.00001, "0.001"}, {0.0001, "0.01"}, {0.001, "0.1"}, {0.01, "1"}, {0.1, "10"}, {0.5, "50"}}},
		across: axis{name: "bits per key, as the file has them", ticks: []tick{
			{4, "4"}, {6, "6"}, {8, "8"}, {10, "10"}, {12, "12"}, {14, "14"}, {16, "16"}, {18, "18"}, {20, "20"}}},
		lines: []curve{
			{"Pebble's own", "k5", points{{4, 0.156}, {6, 0.0579}, {8, 0.0254}, {10, 0.0115}, {12, 0.00687},
				{16, 0.00355}, {20, 0.00262}}},
			{"blocked", "k3", points{{4, 0.148}, {6, 0.0576}, {8, 0.0235}, {10, 0.00923}, {12, 0.00385},
				{16, 0.000885}, {20, 0.000235}}},
			{"bloom", "k4", points{{4, 0.147}, {6, 0.0557}, {8, 0.022}, {10, 0.00837}, {12, 0.0034},
				{16, 0.000495}, {20, 0.000055}}},
			{"cuckoo", "k2", points{{4.22, 0.399}, {6.32, 0.114}, {8.42, 0.0298}, {12.64, 0.00189},
				{16.85, 0.000115}}},
			{"fuse", "k1", points{{4.61, 0.0621}, {6.92, 0.0153}, {9.22, 0.00377}, {13.83, 0.000265},
				{18.44, 0.000025}}},
			{"ribbon", "k6", points{{4.03, 0.0615}, {6.03, 0.0152}, {8.03, 0.00394}, {12.04, 0.000275},
				{16.04, 0.000015}}},
			{"the bound, 2^-bits", "k6 few bare", points{{4, 1. / 16}, {16.6, 0.0000101}}},
		},
	}).draw()
}
