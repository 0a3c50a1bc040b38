package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linkedModules lists the modules that the command may link, with a reason for
// each. It contains only modules that are needed to run or operate a hub. Code
// that measures, draws or simulates belongs in a program below bench.
var linkedModules = map[string]string{
	"code.dny.dev/ssrf":                                            "addresses that no receiver may have",
	"github.com/Azure/azure-sdk-for-go/sdk/azcore":                 "requests to Azure: retries, policies, credentials",
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity":             "the hub's identity in Azure, where it has no keys",
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos":          "the client for Cosmos DB",
	"github.com/Azure/azure-sdk-for-go/sdk/internal":               "part of azcore",
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus": "the client for Service Bus",
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob":         "the client for Blob Storage",
	"github.com/Azure/azure-sdk-for-go/sdk/tracing/azotel":         "spans of the clients of Azure",
	"github.com/Azure/go-amqp":                                     "AMQP below azservicebus; its errors are classified",
	"github.com/AzureAD/microsoft-authentication-library-for-go":   "tokens, for azidentity",
	"github.com/HdrHistogram/hdrhistogram-go":                      "latencies of the sub-command bench",
	"github.com/andybalholm/brotli":                                "columns of Parquet files",
	"github.com/beorn7/perks":                                      "quantiles, for prometheus",
	"github.com/cespare/xxhash/v2":                                 "hashes of labels, for prometheus",
	"github.com/coder/websocket":                                   "AMQP over WebSockets, as the embedded bus speaks it",
	"github.com/coreos/go-oidc/v3":                                 "verification of tokens",
	"github.com/dustin/go-humanize":                                "numbers in errors of minio-go",
	"github.com/evanphx/json-patch/v5":                             "patches of the attributes of objects",
	"github.com/go-chi/chi/v5":                                     "routes of the HTTP edge",
	"github.com/go-jose/go-jose/v4":                                "signatures of tokens, and keys of issuers",
	"github.com/go-json-experiment/json":                           "stored documents keep the members that this version does not know",
	"github.com/go-logr/logr":                                      "part of the SDK of OpenTelemetry",
	"github.com/go-logr/stdr":                                      "part of the SDK of OpenTelemetry",
	"github.com/golang-jwt/jwt/v5":                                 "tokens, for azidentity",
	"github.com/google/uuid":                                       "ids",
	"github.com/jmespath-community/go-jmespath":                    "filters of subscriptions",
	"github.com/klauspost/compress":                                "gzip of bundles, faster than that of the standard library",
	"github.com/klauspost/cpuid/v2":                                "hashes of minio-go",
	"github.com/klauspost/crc32":                                   "checksums of minio-go",
	"github.com/kylelemons/godebug":                                "errors of the authentication library",
	"github.com/minio/crc64nvme":                                   "checksums of minio-go",
	"github.com/minio/md5-simd":                                    "checksums of minio-go",
	"github.com/minio/minio-go/v7":                                 "the client for S3",
	"github.com/munnerz/goautoneg":                                 "formats of metrics, for prometheus",
	"github.com/parquet-go/bitpack":                                "part of parquet-go",
	"github.com/parquet-go/jsonlite":                               "part of parquet-go",
	"github.com/parquet-go/parquet-go":                             "inventories in Parquet",
	"github.com/philhofer/fwd":                                     "part of tinylib/msgp",
	"github.com/pierrec/lz4/v4":                                    "columns of Parquet files",
	"github.com/pkg/browser":                                       "part of azidentity",
	"github.com/prometheus/client_golang":                          "metrics",
	"github.com/prometheus/client_model":                           "metrics",
	"github.com/prometheus/common":                                 "metrics",
	"github.com/prometheus/procfs":                                 "metrics of the process",
	"github.com/rs/xid":                                            "ids of minio-go",
	"github.com/spf13/cobra":                                       "the command line",
	"github.com/spf13/pflag":                                       "its flags, which are also the hub's configuration",
	"github.com/tidwall/btree":                                     "ordered indexes of the embedded Cosmos",
	"github.com/tinylib/msgp":                                      "answers of MinIO, for minio-go",
	"github.com/twpayne/go-geom":                                   "part of parquet-go",
	"github.com/zeebo/xxh3":                                        "checksums of minio-go",
	"go.etcd.io/bbolt":                                             "the files of the embedded engines",
	"go.opentelemetry.io/auto/sdk":                                 "part of the API of OpenTelemetry",
	"go.opentelemetry.io/otel":                                     "names and values of spans",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace":            "the form of spans in OTLP",
	"go.opentelemetry.io/otel/log":                                 "part of the SDK of OpenTelemetry",
	"go.opentelemetry.io/otel/metric":                              "part of the SDK of OpenTelemetry",
	"go.opentelemetry.io/otel/sdk":                                 "sampling and batches of spans",
	"go.opentelemetry.io/otel/trace":                               "spans, in the edges",
	"go.opentelemetry.io/proto/otlp":                               "messages of OTLP, of which those with gRPC are not linked",
	"go.yaml.in/yaml/v3":                                           "configuration files, and the OpenAPI document",
	"golang.org/x/crypto":                                          "keys in PKCS #12, for azidentity",
	"golang.org/x/crypto/x509roots/fallback":                       "root certificates, where the system has none",
	"golang.org/x/exp":                                             "types of numbers, for go-jmespath",
	"golang.org/x/net":                                             "HTTP/2 to Cosmos DB, for azcosmos",
	"golang.org/x/oauth2":                                          "part of go-oidc",
	"golang.org/x/sync":                                            "errgroup, semaphore",
	"golang.org/x/sys":                                             "locks of files, and sizes of disks",
	"golang.org/x/term":                                            "whether a person watches, and how wide the terminal is",
	"golang.org/x/text":                                            "host names, for golang.org/x/net",
	"golang.org/x/time":                                            "the rate of replays",
	"google.golang.org/protobuf":                                   "the contract with domains on the bus; metrics",
	"maragu.dev/gomponents":                                        "HTML of the console; html/template keeps every method of the program, 8 MB",
	"gopkg.in/ini.v1":                                              "credential files, for minio-go",
}

func TestCommand_LinksOnlyModulesWithAReason(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	if len(modules) == 0 {
		t.Fatal("go list names no module, though the command uses some")
	}
	for _, module := range modules {
		if linkedModules[module] == "" {
			t.Errorf("the command links %s; avoid it, or add it with its reason to cmd/messagehub/modules_test.go", module)
		}
	}
	for module := range linkedModules {
		if !slices.Contains(modules, module) {
			t.Errorf("the command no longer links %s; remove it from cmd/messagehub/modules_test.go", module)
		}
	}
}
