// Package archtest holds the project to its layers: an import that points up, a
// dependency that an embedder should not pay for, a module that reaches into another, or a
// decoder without a bound on what it allocates fails its tests.
package archtest
