package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsole_SessionKeyIsNoTokenThatCanBeGuessed(t *testing.T) {
	require.Empty(t, sessionKey("correct-horse-16"))
	require.Equal(t, "JBSWY3DPEHPK3PXPJBSWY3DPEH", sessionKey("JBSWY3DPEHPK3PXPJBSWY3DPEH"), "one that a node generates")
}
