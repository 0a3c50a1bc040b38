package emulator

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	cosmos "github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

func TestCheckAddress_RejectsPublicAddressesForAReason(t *testing.T) {
	var own, insecure Options
	insecure.Insecure = true
	require.ErrorContains(t, own.checkAddress("0.0.0.0:8081", knownKey), "its key is the well-known one")
	require.NoError(t, own.checkAddress("0.0.0.0:8081", ""), "with a key of its own")
	require.NoError(t, insecure.checkAddress("0.0.0.0:8081", knownKey))
	require.NoError(t, own.checkAddress("localhost:8081", knownKey))
}

func TestRun_RefusesWhatValidateRefuses(t *testing.T) {
	var out bytes.Buffer
	shared := Options{Out: &out, Err: io.Discard, Logger: slog.New(slog.DiscardHandler)}
	cosmosDB := Cosmos{Options: shared, Listen: "0.0.0.0:0"}
	require.Error(t, cosmosDB.Validate())
	require.Equal(t, cosmosDB.Validate(), cosmosDB.Run(t.Context()))
	blob := Blob{Options: shared, Listen: "0.0.0.0:0"}
	require.Error(t, blob.Validate())
	require.Equal(t, blob.Validate(), blob.Run(t.Context()))
	serviceBus := ServiceBus{Options: shared, Listen: []string{"127.0.0.1:0", "0.0.0.0:0"}}
	require.Error(t, serviceBus.Validate())
	require.Equal(t, serviceBus.Validate(), serviceBus.Run(t.Context()))
	require.Empty(t, out.String())
	serviceBus.Key = "own"
	require.NoError(t, serviceBus.Validate())
}

func TestRun_ReportsThatAnotherProcessHasThePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	want := "listen on " + address + ": another process has this port; stop that one, or choose another port with --listen"
	shared := Options{Out: io.Discard, Err: io.Discard, Logger: slog.New(slog.DiscardHandler)}
	cosmosDB := Cosmos{Options: shared, Listen: address, Engine: cosmos.Options{}}
	require.EqualError(t, cosmosDB.Run(t.Context()), want)
	blob := Blob{Options: shared, Listen: address, Engine: blobs.Options{}}
	require.EqualError(t, blob.Run(t.Context()), want)
	serviceBus := ServiceBus{Options: shared, Listen: []string{"127.0.0.1:0", address}, Engine: bus.Options{}}
	require.EqualError(t, serviceBus.Run(t.Context()), want)
}
