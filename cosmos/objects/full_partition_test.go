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

// A fullPartition refuses each batch that stores the object called key, as an account does if the
// partition is full.
type fullPartition struct {
	next        faulty.Doer
	key         string
	byOperation bool // true: one operation of the batch fails, as in Azure; false: the whole request fails, as in an embedded engine
}

func (f *fullPartition) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("x-ms-cosmos-is-batch-request") == "" {
		return f.next.Do(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte(`"key":"`+f.key+`"`)) {
		return f.next.Do(req)
	}
	answer := &http.Response{Request: req, StatusCode: http.StatusForbidden, Header: http.Header{"X-Ms-Substatus": {"1014"}}, Body: io.NopCloser(strings.NewReader("{}"))}
	if f.byOperation {
		n := bytes.Count(body, []byte(`"operationType"`))
		results := strings.Repeat(`{"statusCode":424},`, n-1) + `{"statusCode":403}`
		answer.StatusCode, answer.Header, answer.Body = http.StatusMultiStatus, http.Header{}, io.NopCloser(strings.NewReader("["+results+"]"))
	}
	return answer, nil
}

func TestAFullPartitionRefusesOnlyTheEvent(t *testing.T) {
	for _, byOperation := range []bool{false, true} {
		t.Run(fmt.Sprint("by operation ", byOperation), func(t *testing.T) {
			a := accounttest.New(t, embedded.Options{}, Containers())
			s := New(a.ConnectBy(&fullPartition{a.Transport, "k5", byOperation}), Options{Shards: 1})
			var call []repository.ObjectReport
			for i := range 9 {
				call = append(call, repository.ObjectReport{
					Name: must(domain.ParseObjectName("bucket", fmt.Sprint("k", i))), ObjectEvent: objecttest.Calls("[C@C1]")[0][0],
				})
			}
			results, err := s.Ingest(t.Context(), call)
			require.NoError(t, err)
			for i, r := range results {
				if i == 5 {
					require.ErrorIs(t, r.Err, repository.ErrPartitionFull)
					require.Equal(t, domain.Unavailable, domain.KindOf(r.Err))
					continue
				}
				require.NoError(t, r.Err)
				require.Equal(t, domain.ObjectStored, r.Outcome)
			}
		})
	}
}
