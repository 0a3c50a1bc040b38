package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestConsole_SessionKeyIsNoTokenThatCanBeGuessed(t *testing.T) {
	require.Empty(t, sessionKey(&config.Config{}, "correct-horse-16"))
	require.Equal(t, config.Secret("JBSWY3DPEHPK3PXPJBSWY3DPEH"), sessionKey(&config.Config{}, "JBSWY3DPEHPK3PXPJBSWY3DPEH"), "one that a node generates")
}
