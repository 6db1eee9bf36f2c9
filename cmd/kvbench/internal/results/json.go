package results

import (
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/internal/cli/outfile"
)

// WriteJSON writes a result to a file as outfile.Write does: whole, or not at all.
func WriteJSON(path string, result any) error {
	data, err := page.JSON(result)
	if err != nil {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
