// Package page has what results and reports show alike: counts, sizes, and JSON.
package page

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// Size formats bytes.
func Size[N int | int64 | uint64 | float64](bytes N) string { return bench.Size(bytes).String() }

// Times says how many of something there are.
func Times(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Count shows a whole number of any type.
func Count(n any) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// JSON returns a result as indented JSON that ends with a line feed.
func JSON(result any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(result); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return out.Bytes(), nil
}
