package contract_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide page for domains contains the definitions of the messages for content and notices,
// equal to those in contract.proto except for the comments.
func TestDomainsPage_HasTheMessagesOfTheContract(t *testing.T) {
	page, err := os.ReadFile("../../guide/domains.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```proto\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	contract, err := os.ReadFile("contract.proto")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m) *//.*$`).ReplaceAllString(string(contract), "")
	messages := regexp.MustCompile(`(?ms)^message .*?^}\n`).FindAllString(text, -1)
	require.Len(t, messages, 4)
	want := regexp.MustCompile(`\n{2,}`).ReplaceAllString(strings.Join(messages[1:], ""), "\n")
	require.Equal(t, "syntax = \"proto3\";\n"+want, string(shown[1]))
}
