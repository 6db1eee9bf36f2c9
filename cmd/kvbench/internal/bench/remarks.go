package bench

import "fmt"

// Remarks are sentences for the reader of a result.
type Remarks []string

// If adds a sentence if it applies.
func (r *Remarks) If(applies bool, format string, args ...any) {
	if applies {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}
