package filter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/filter"
)

func TestCompile_NamesTheCharactersAndThePositionOfASyntaxFault(t *testing.T) {
	for text, want := range map[string]string{
		"type = 1":   "Invalid token: a number without backticks, at byte 7",
		"a[":         "Expected *, received: the end of the expression, at byte 2",
		"{a}":        "Expected :, received: }, at byte 2",
		"a b":        "Unexpected token at the end of the expression: a name, at byte 2",
		"a[1:2:3:4]": "Too many colons in slice expression, at byte 7",
		"#":          "Unknown char: '#', at byte 0",
	} {
		_, err := filter.Compile(text)
		require.EqualError(t, err, "want a JMESPath expression: "+want, text)
	}
}
