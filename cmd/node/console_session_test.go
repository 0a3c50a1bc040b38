package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestConsole_SessionKeyIsNoTokenThatCanBeGuessed(t *testing.T) {
	cfg := config.Default()
	require.Empty(t, sessionKey(&cfg, "correct-horse-16"))
	require.Equal(t, config.Secret("JBSWY3DPEHPK3PXPJBSWY3DPEH"), sessionKey(&cfg, "JBSWY3DPEHPK3PXPJBSWY3DPEH"), "one that a node generates")
	cfg.Console.SessionKey = "a-secret-of-26-characters-"
	require.Equal(t, cfg.Console.SessionKey, sessionKey(&cfg, "correct-horse-16"))
}
