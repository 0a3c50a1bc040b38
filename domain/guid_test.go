package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestFromGUID_ReadsEveryFormOfDotNet(t *testing.T) {
	const want = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"
	for _, text := range []string{
		want,
		strings.ToUpper(want),
		" " + want + "\t",
		strings.ReplaceAll(want, "-", ""),
		strings.ToUpper(strings.ReplaceAll(want, "-", "")),
		"{" + want + "}",
		"(" + strings.ToUpper(want) + ")",
		"{0x0A1B2C3D,0x4e5f,0x4071,{0x82,0x93,0xa4,0xb5,0xc6,0xd7,0xe8,0xf9}}",
		"{0xA1B2C3D, 0x4e5f, 0x4071, {0x82, 0x93, 0xa4, 0xb5, 0xc6, 0xd7, 0xe8, 0xf9}}",
	} {
		got, ok := domain.FromGUID(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestFromGUID_RefusesOtherText(t *testing.T) {
	const guid = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"
	for _, text := range []string{
		"", " ", "4711", "5790001330552", guid[:35], guid + "0", guid[:35] + "X", "{" + guid, guid + "}", "(" + guid + "}", "{(" + guid + ")}", "{{" + guid + "}}",
		strings.ReplaceAll(guid, "-", "")[:31], "{0x0,0x0,0x0,{0x0,0x0}}", "urn:uuid:" + guid,
		strings.Repeat("a", 5000),
	} {
		got, ok := domain.FromGUID(text)
		require.False(t, ok, "%q", text)
		require.Empty(t, got)
	}
}

func TestFromGUID_AcceptsTheNilUUID(t *testing.T) {
	for _, text := range []string{"00000000-0000-0000-0000-000000000000", strings.Repeat("0", 32), "{0x0,0x0,0x0,{0x0,0x0,0x0,0x0,0x0,0x0,0x0,0x0}}"} {
		got, ok := domain.FromGUID(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, "00000000-0000-0000-0000-000000000000", got)
	}
}
