package node

import (
	"bytes"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOperatorIsToldThatStrangersReachADoor(t *testing.T) {
	for ip, told := range map[string]bool{"127.0.0.1": false, "127.1.2.3": false, "::1": false, "0.0.0.0": true, "::": true, "10.0.0.1": true} {
		var log bytes.Buffer
		warnOfStrangers(slog.New(slog.NewTextHandler(&log, nil)), "blob-listen", &net.TCPAddr{IP: net.ParseIP(ip), Port: 10000})
		require.Equal(t, told, bytes.Contains(log.Bytes(), []byte("key=blob-listen")), ip)
	}
}
