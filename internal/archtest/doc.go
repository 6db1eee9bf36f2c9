// Package archtest holds the project to its layers: an import that points up, or
// a dependency that an embedder should not pay for, fails its tests.
package archtest
