//go:build race

package quotient

import "flag"

// Under the race detector properties are checked fewer times, unless a flag or the environment
// says how many.
func init() {
	checks := flag.Lookup("rapid.checks")
	if checks.DefValue != "100" {
		return
	}
	if err := checks.Value.Set("20"); err != nil {
		panic(err)
	}
}
