package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable returns a table without frames whose first left columns are aligned
// to the left and all others to the right.
func newTable(left int, header table.Row) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Box.MiddleHorizontal = "─"
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	columns := make([]table.ColumnConfig, len(header))
	for i := range columns {
		align := text.AlignRight
		if i < left {
			align = text.AlignLeft
		}
		columns[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	t.SetColumnConfigs(columns)
	return t
}
