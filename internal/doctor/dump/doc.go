// Package dump goes through single files of a store, item by item and past damage,
// for people and programs that look into them. It needs no store around the file, and
// takes no lock.
package dump
