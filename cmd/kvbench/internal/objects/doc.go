// Package objects measures what a store in an object store costs: requests and bytes per lookup,
// scan and write, round trips, and dollars.
//
// A run makes one store per filter in an object store that counts requests, compacts it into one
// sorted run, asks it, puts young files into its level 0, and asks it again. Every answer is
// checked. Run is the only way in; Config.Open is for programs that have another object store.
package objects
