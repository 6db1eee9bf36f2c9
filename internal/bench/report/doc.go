// Package report renders results: tables for people, JSON for programs. Every
// number it prints is in the JSON, or a quotient of two numbers that are.
package report
