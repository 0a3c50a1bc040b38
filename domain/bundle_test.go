package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestMessageTypeListsTheDocumentTypesInOrder(t *testing.T) {
	for want, types := range map[string][]domain.DocumentType{
		"":                     nil,
		"RSM012":               {documentType("RSM012")},
		"RSM012,RSM004,RSM 14": {documentType("RSM012"), documentType("RSM004"), documentType("RSM 14")},
	} {
		bundle := domain.Bundle{DocumentTypes: types}
		require.Equal(t, want, bundle.MessageType())
	}
}

func TestParseContentMode(t *testing.T) {
	for text, want := range map[string]domain.ContentMode{"manifest": domain.Manifest, "inline": domain.Inline, "request": domain.Request} {
		got, err := domain.ParseContentMode(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "Inline", "MANIFEST", "requests", " inline", "inline\n"} {
		got, err := domain.ParseContentMode(text)
		requireInvalid(t, err, `content: want manifest, inline or request, got `+quoteText(text))
		require.Empty(t, got)
	}
}

func TestParseFormatInAnyCase(t *testing.T) {
	for text, want := range map[string]domain.Format{
		"json": domain.JSON, "JSON": domain.JSON, "Json": domain.JSON,
		"xml": domain.XML, "XML": domain.XML, "xMl": domain.XML,
	} {
		got, err := domain.ParseFormat(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "csv", "json ", "application/json"} {
		got, err := domain.ParseFormat(text)
		requireInvalid(t, err, `format: want json or xml, got `+quoteText(text))
		require.Empty(t, got)
	}
	_, err := domain.ParseFormat(strings.Repeat("x", 65))
	requireInvalid(t, err, `format: want json or xml, got "`+strings.Repeat("x", 64)+`…"`)
}

func quoteText(plain string) string { return `"` + strings.ReplaceAll(plain, "\n", `\n`) + `"` }
