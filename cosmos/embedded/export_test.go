package embedded_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestImport_RestoresAnExportedAccount(t *testing.T) {
	from, c := openEngine(t, embedded.Options{}, uniqueMail, withTTL(1000))
	raiseThroughput(t, c, 20_000)
	for i := range 250 {
		createDocs(t, c, fmt.Appendf(nil, `{"id":"i%03d","pk":"p","mail":"<%d>","name":{"first":"%d"},"big":12345678901234567,"data":"%0*d"}`, i, i, i, 1+i%3*5000, 1))
	}
	var first, second bytes.Buffer
	require.NoError(t, from.Export(&first))
	to, err := embedded.Open(embedded.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close()) }()
	for range 2 { // the second import replaces all documents
		n, err := to.Import(t.Context(), bytes.NewReader(first.Bytes()))
		require.NoError(t, err)
		require.Equal(t, 250, n)
	}
	second.Reset()
	require.NoError(t, to.Export(&second))
	require.Equal(t, first.String(), second.String())
	census, err := to.Check(func(problem string) { t.Error(problem) })
	require.NoError(t, err)
	require.Equal(t, 250, census.Documents)
	imported, err := newClient(t, to).NewContainer("db", "c")
	require.NoError(t, err)
	ranges, err := imported.ReadFeedRanges(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, ranges, 2)
	_, err = imported.CreateItem(t.Context(), pk, []byte(`{"id":"new","pk":"p","mail":"<7>"}`), nil)
	require.Equal(t, 409, clientStatus(t, nil, err), "unique keys came along")
	require.NotEmpty(t, queryAll(t, imported, azcosmos.NewPartitionKey(), "SELECT * FROM c", nil))
}

func TestImport_NamesTheInvalidLine(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	const database, container = `{"database":"db","properties":{"id":"db"}}`, `{"container":"c","properties":{"id":"c","partitionKey":{"paths":["/pk"]}}}`
	for text, says := range map[string]string{
		`{"document":{"id":"a"}}`:                                     "line 1: a document comes before",
		database + "\n\n" + "nonsense":                                "line 3: ",
		`{"container":"c"}`:                                           "line 1: want a database",
		database + "\n" + container + "\n" + `{"document":{"x":1}}`:   "line 3: the document has no id",
		database + "\n" + `{"container":"d","properties":{"id":"d"}}`: "line 2: container \"d\": partitionKey",
	} {
		_, err := engine.Import(t.Context(), strings.NewReader(text))
		require.ErrorContains(t, err, says)
	}
}
