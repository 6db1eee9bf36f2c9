package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTexts(t *testing.T) {
	texts := ParseTexts("About the file.\n\n== description\nOne\nparagraph.\n\nAnother.\n\n" +
		"== help json\nPrint\nJSON.\n\n== detail trace make\nMore.\nOf it:\n  a: 1\n    b: 2\n\n== example\na b\na c\n")
	require.Equal(t, &Texts{Description: "One paragraph.\n\nAnother.", Helps: map[string]string{"json": "Print JSON."},
		Details:  map[string]string{"trace make": "More. Of it:\n  a: 1\n    b: 2"},
		Examples: map[string]string{"": "a b\na c"}}, texts)
	require.Panics(t, func() { ParseTexts("\n== hlep json\nPrint JSON.\n") })
	require.Panics(t, func() { ParseTexts("\n== help json\nPrint JSON.\n\n== help json\nAgain.\n") })
}
