// Package examples has no code of its own: the programs are below. Its test builds each of them and runs
// it as a reader would.
package examples
