package emulator

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	cosmos "github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

func TestRun_ServesUntilTheContextEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(Options) interface{ Run(context.Context) error }
		want string // pattern of the line that Run prints to Out
	}{
		{"cosmos", func(o Options) interface{ Run(context.Context) error } {
			return &Cosmos{Options: o, Listen: "127.0.0.1:0"}
		}, `^Cosmos DB emulator v1 listens on http://127\.0\.0\.1:\d+/ with key ` + regexp.QuoteMeta(cosmos.WellKnownKey) + `\n$`},
		{"servicebus", func(o Options) interface{ Run(context.Context) error } {
			return &ServiceBus{Options: o, Listen: []string{"127.0.0.1:0"}, Key: "own"}
		}, `^Service Bus emulator v1 listens on 127\.0\.0\.1:\d+ with connection string Endpoint=.*SharedAccessKey=YOUR_KEY;.*\n$`},
		{"blob", func(o Options) interface{ Run(context.Context) error } {
			return &Blob{Options: o, Listen: "127.0.0.1:0"}
		}, `^Blob Storage emulator v1 listens on 127\.0\.0\.1:\d+ with connection string .*AccountKey=` + regexp.QuoteMeta(blobs.WellKnownKey) + `;.*\n$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read, write := io.Pipe()
			var log bytes.Buffer
			o := Options{Version: "v1", Out: write, Err: io.Discard, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- tc.make(o).Run(ctx) }()
			greeting, err := bufio.NewReader(read).ReadString('\n')
			require.NoError(t, err)
			require.Regexp(t, tc.want, greeting)

			address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(greeting)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			answer, err := client.Get("http://" + address + "/healthz")
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, "ok\n", string(body))

			cancel()
			require.NoError(t, <-ended)
			require.Contains(t, log.String(), "msg=ready ")
		})
	}
}
