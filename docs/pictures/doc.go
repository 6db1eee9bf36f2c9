// Package pictures has the pictures of the documents, as SVG. They are golden files: a test draws them and holds the
// files against what it drew, and `make golden` writes them.
//
// A picture is a function that draws boxes, text and lines at coordinates of its own.
package pictures
