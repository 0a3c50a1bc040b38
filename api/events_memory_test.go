package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// slowStreams is a store of streams whose appends wait until proceed is closed.
type slowStreams struct {
	repository.Streams
	proceed chan struct{}
}

func (s *slowStreams) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	<-s.proceed
	return s.Streams.Append(ctx, stream, messages)
}

func TestEvents_HoldTheMemoryOfTheirBodyUntilTheyAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := &slowStreams{memory.NewStreams(time.Hour, time.Now), make(chan struct{})}
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Events = publish.New(streams, func(domain.StreamName, []domain.Message, []repository.Appended) {})
			o.Limits.RequestBody, o.Limits.Bodies, o.Limits.BodiesPerAddress = bigUpload, 4*bigUpload, bigUpload
		}))
		conn := b.dialFrom(1)
		published := make(chan *http.Response, 1)
		go func() {
			body := cloudEvent("1", fmt.Sprintf(`"data":%q`, strings.Repeat("x", bigUpload-1000)))
			_, _ = fmt.Fprintf(conn, "POST /v1/events HTTP/1.1\r\nHost: hub\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", structured, len(body), body)
			resp, _ := http.ReadResponse(bufio.NewReader(conn), nil)
			published <- resp
		}()
		synctest.Wait() // the event is being stored
		other := b.upload(b.dialFrom(1), bigUpload, bigUpload)
		require.Empty(t, other, "the memory of the address is in use")
		close(streams.proceed)
		require.Equal(t, 202, (<-published).StatusCode)
		require.Equal(t, 202, (<-other).StatusCode)
	})
}
