package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

func madeIDs(n int) []uuid.UUID {
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.MustParse(fmt.Sprintf("0b9f4c5e-7a52-4d57-9d0c-%012d", i))
	}
	return ids
}

func TestGeneratedContent_IsAValidDocumentOfItsSize(t *testing.T) {
	r := &domainclient.Request{IdempotencyID: `b_<a&"`, ContentType: "<Price&List>"}
	for _, n := range []int{0, 1, 2, 7, 1000} {
		for _, size := range []int{0, 300, 4096, 200_001} {
			ids := madeIDs(n)
			least := newContent(r, domainclient.FormatJSON, ids, 0)
			text, err := io.ReadAll(least)
			require.NoError(t, err)
			made, err := io.ReadAll(iotest.HalfReader(newContent(r, domainclient.FormatJSON, ids, int64(size))))
			require.NoError(t, err)
			want := max(size, len(text))
			if n == 0 {
				want = len(text)
			}
			require.Len(t, made, want)
			var bundle struct {
				Bundle, ContentType string
				Events              []struct {
					ID   uuid.UUID
					Data string
				}
			}
			require.NoError(t, json.Unmarshal(made, &bundle))
			require.Equal(t, r.IdempotencyID, bundle.Bundle)
			require.Equal(t, r.ContentType, bundle.ContentType)
			require.Len(t, bundle.Events, n)
			for i, e := range bundle.Events {
				require.Equal(t, ids[i], e.ID)
			}

			made, err = io.ReadAll(newContent(r, domainclient.FormatXML, ids, int64(size)))
			require.NoError(t, err)
			if n > 0 {
				require.GreaterOrEqual(t, len(made), size)
			}
			var document struct {
				ID          string `xml:"id,attr"`
				ContentType string `xml:"contentType,attr"`
				Events      []struct {
					ID string `xml:"id,attr"`
				} `xml:"event"`
			}
			require.NoError(t, xml.Unmarshal(made, &document))
			require.Equal(t, r.IdempotencyID, document.ID)
			require.Equal(t, r.ContentType, document.ContentType)
			require.Len(t, document.Events, n)
			for i, e := range document.Events {
				require.Equal(t, ids[i].String(), e.ID)
			}
		}
	}
}

func TestGeneratedContent_IsGeneratedWhileItIsRead(t *testing.T) {
	const size = 1 << 30
	content := newContent(&domainclient.Request{}, domainclient.FormatXML, madeIDs(3), size)
	n, err := io.Copy(io.Discard, content)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	again := newContent(&domainclient.Request{}, domainclient.FormatXML, madeIDs(3), size)
	buffer := make([]byte, 32<<10)
	require.Less(t, testing.AllocsPerRun(100, func() { _, _ = again.Read(buffer) }), 5.0)
}

func TestParseActors_AcceptsANumberOrNames(t *testing.T) {
	made, err := parseActors("3")
	require.NoError(t, err)
	require.Equal(t, []string{"5790000000005", "5790000000012", "5790000000029"}, made)
	named, err := parseActors("5790001330552, a.b")
	require.NoError(t, err)
	require.Equal(t, []string{"5790001330552", "a.b"}, named)
	for _, wrong := range []string{"", "0", "-1", "a,,b", "a b"} {
		_, err := parseActors(wrong)
		require.Error(t, err, wrong)
	}
}
