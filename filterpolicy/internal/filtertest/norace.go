//go:build !race

package filtertest

const raceShare = 1
