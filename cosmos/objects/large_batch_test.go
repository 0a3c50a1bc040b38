package objects

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// A sizeLimit refuses batches of more than limit bytes.
type sizeLimit struct {
	next    faulty.Doer
	limit   int
	refused int
}

func (l *sizeLimit) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("x-ms-cosmos-is-batch-request") == "" {
		return l.next.Do(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) <= l.limit {
		return l.next.Do(req)
	}
	l.refused++
	return &http.Response{Request: req, StatusCode: http.StatusRequestEntityTooLarge, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// Events with large attributes exceed the size of a batch. They are stored in several batches.
func TestABatchThatIsTooLargeIsHalved(t *testing.T) {
	const names = 64
	a := accounttest.New(t, embedded.Options{}, Containers())
	line := &sizeLimit{next: a.Transport, limit: 1<<20 + 100<<10} // maxBytes of documents, and room for the encoding of a batch
	s := New(a.ConnectBy(line), Options{Shards: 1})
	var message []repository.ObjectReport
	for i := range names {
		message = append(message, repository.ObjectReport{
			Name: must(domain.ParseObjectName("bucket", fmt.Sprint("key", i))), ObjectEvent: objecttest.Calls("[C@C1]")[0][0],
		})
	}
	ingest := func(want domain.ObjectOutcome) {
		t.Helper()
		results, err := s.Ingest(t.Context(), message)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
			require.Equal(t, want, r.Outcome)
		}
	}
	ingest(domain.ObjectStored)
	for i := range message {
		_, err := s.Amend(t.Context(), message[i].Name, domain.ObjectRowID{}, func(f domain.ObjectFacts) (domain.ObjectFacts, error) {
			f.Attributes = `{"text":"` + strings.Repeat("a", 16<<10-20) + `"}`
			return f, nil
		})
		require.NoError(t, err)
	}
	ingest(domain.ObjectDuplicate)
	require.Zero(t, line.refused, "the store makes no batch that is too large")

	line.limit = 100 << 10 // lower than maxBytes
	ingest(domain.ObjectDuplicate)
	require.Positive(t, line.refused)
	for i := range message {
		o, err := s.Object(t.Context(), message[i].Name)
		require.NoError(t, err)
		require.EqualValues(t, 2, o.Duplicates)
	}
}
