package node_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

var declaredKind = regexp.MustCompile(`client\.DocumentKind\{Name: "([\w-]+)", Format`)

func TestFormats_HaveEveryKindOfDocument(t *testing.T) {
	formats := node.Formats()
	for area, folder := range map[string]string{"events": "cosmos", "push": "cosmos/push", "objects": "cosmos/objects", "level": "cosmos/level", "doctor": "cosmos/probe", "survey": "cosmos/survey"} {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		require.NoError(t, err)
		declared := make(map[string]bool)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, found := range declaredKind.FindAllStringSubmatch(string(text), -1) {
				declared[found[1]] = true
				require.Positive(t, formats[area][found[1]], "DocumentKinds of %s lacks %s", folder, found[1])
			}
		}
		require.Len(t, formats[area], len(declared))
	}
	require.Equal(t, 3, formats["events"]["head"], "heads without the ordinals of removed cabinets are of an older format")
}
