// Command querysamples runs Microsoft's samples of queries on the engine. It prints each sample
// whose result differs from the documented result, and the number of all other samples.
//
// Its argument is the folder scripts of a checkout of github.com/Azure-Samples/cosmos-db-nosql-query-samples.
// Each sample is a folder with documents (seed.json), a query (query.sql) and its result (result.json).
// The files of samples that Microsoft does not run itself are named *.novalidate.*. Each sample has a
// separate account. A result that depends on the time, on chance or on the account needs only the
// documented properties and types. A sample without documents or without a result passes if its query
// succeeds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func main() {
	queries, err := filepath.Glob(filepath.Join(strings.Join(os.Args[1:], " "), "*", "query.*sql"))
	if err != nil || len(os.Args) != 2 || len(queries) == 0 {
		fmt.Fprintln(os.Stderr, "usage: querysamples FOLDER, where FOLDER is the folder scripts of a checkout of cosmos-db-nosql-query-samples")
		os.Exit(2)
	}
	same := 0
	for _, query := range queries {
		if err := runSample(context.Background(), query); err != nil {
			fmt.Printf("%s: %v\n", filepath.Base(filepath.Dir(query)), err)
			continue
		}
		same++
	}
	fmt.Printf("query samples: %d of %d have the documented result\n", same, len(queries))
}

// earlier is how many documents are created and deleted before those of a sample. One sample needs documents with a
// DOCUMENTID from 5 to 15.
const earlier = 4

// varying are functions whose results depend on the time, on chance or on the account.
var varying = regexp.MustCompile(`(?i)\b(RAND|GETCURRENT\w+|DOCUMENTID)\(`)

// runSample runs the sample whose query is in file. The error describes how the result differs from the documented one.
func runSample(ctx context.Context, file string) (err error) {
	suffix := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), "sql"), "query") + "json"
	text, err := os.ReadFile(file) //nolint:gosec // named by the user
	if err != nil {
		return err
	}
	seed, err := readArray[json.RawMessage](filepath.Join(filepath.Dir(file), "seed"+suffix))
	if err != nil {
		return err
	}
	want, err := readArray[any](filepath.Join(filepath.Dir(file), "result"+suffix))
	if err != nil {
		return err
	}
	engine, err := embedded.Open(embedded.Options{}) //nolint:contextcheck // opening must not be interrupted
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	container, err := createContainer(ctx, engine, seed)
	if err != nil {
		return err
	}
	got, err := runQuery(ctx, container, string(text))
	switch {
	case err != nil:
		return err
	case seed == nil && len(got) == 0, want == nil:
		return nil
	case varying.Match(text):
		want, got = describeShape(want).([]any), describeShape(got).([]any)
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// wholeRange sends queries to the container's only physical partition, as clients with query plans do. Then aggregates
// and ORDER BY need no partition key.
type wholeRange struct{ policy.Transporter }

func (w wholeRange) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("x-ms-documentdb-query") != "" {
		req.Header.Set("x-ms-documentdb-partitionkeyrangeid", "0")
	}
	return w.Transporter.Do(req)
}

// createContainer creates a container with documents. Its composite index is needed by one sample, for ORDER BY with
// two paths.
func createContainer(ctx context.Context, engine *embedded.Engine, docs []json.RawMessage) (*azcosmos.ContainerClient, error) {
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	if err != nil {
		return nil, err
	}
	options := azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: wholeRange{engine.Transport()}}}
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred, &options)
	if err != nil {
		return nil, err
	}
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "samples"}, nil); err != nil {
		return nil, err
	}
	properties := azcosmos.ContainerProperties{ID: "samples", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Version: 2}}
	names := []azcosmos.CompositeIndex{{Path: "/name/last", Order: azcosmos.CompositeIndexDescending}, {Path: "/name/first", Order: azcosmos.CompositeIndexAscending}}
	properties.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent, IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}}, CompositeIndexes: [][]azcosmos.CompositeIndex{names},
	}
	db, err := client.NewDatabase("samples")
	if err != nil {
		return nil, err
	}
	if _, err := db.CreateContainer(ctx, properties, nil); err != nil {
		return nil, err
	}
	container, err := db.NewContainer("samples")
	if err != nil {
		return nil, err
	}
	for i := range earlier {
		docs = slices.Insert(docs, 0, json.RawMessage(fmt.Sprintf(`{"id":"earlier%d"}`, i)))
	}
	for i, doc := range docs {
		var named struct{ ID string }
		if err := json.Unmarshal(doc, &named); err != nil {
			return nil, err
		}
		key := azcosmos.NewPartitionKeyString(named.ID)
		if _, err := container.CreateItem(ctx, key, doc, nil); err != nil {
			return nil, err
		}
		if i >= earlier {
			continue
		}
		if _, err := container.DeleteItem(ctx, key, named.ID, nil); err != nil {
			return nil, err
		}
	}
	return container, nil
}

// runQuery returns the results of a query. If the query is refused, the error includes the response.
func runQuery(ctx context.Context, container *azcosmos.ContainerClient, text string) ([]any, error) {
	results := []any{}
	for pager := container.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		var refused *azcore.ResponseError
		if errors.As(err, &refused) && refused.RawResponse != nil {
			if body, err := runtime.Payload(refused.RawResponse); err == nil {
				return nil, fmt.Errorf("refused: %s", body)
			}
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			var v any
			if err := json.Unmarshal(item, &v); err != nil {
				return nil, err
			}
			results = append(results, v)
		}
	}
	return results, nil
}

// readArray reads a JSON array from a file. It returns nil if the file does not exist.
func readArray[T any](file string) (list []T, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // named by the user
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	return list, err
}

// describeShape replaces the numbers and strings in v with their types.
func describeShape(v any) any {
	switch v := v.(type) {
	case []any:
		list := []any{}
		for _, item := range v {
			list = append(list, describeShape(item))
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for name, item := range v {
			members[name] = describeShape(item)
		}
		return members
	}
	return reflect.TypeOf(v)
}
