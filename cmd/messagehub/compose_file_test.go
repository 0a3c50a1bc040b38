package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A composeService is a service in deploy/compose.yaml, with those members that
// the tests use.
type composeService struct {
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	DependsOn dependencies `yaml:"depends_on"`
	Ports     []string     `yaml:"ports"`
	Volumes   []string     `yaml:"volumes"`
	Image     string       `yaml:"image"`
}

// A dependencies maps a service to its condition in depends_on. "" means
// service_started.
type dependencies map[string]string

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *dependencies) UnmarshalYAML(node *yaml.Node) error {
	*d = make(dependencies)
	if node.Kind == yaml.SequenceNode {
		var names []string
		err := node.Decode(&names)
		for _, name := range names {
			(*d)[name] = ""
		}
		return err
	}
	var conditions map[string]struct {
		Condition string `yaml:"condition"`
	}
	err := node.Decode(&conditions)
	for name, c := range conditions {
		(*d)[name] = c.Condition
	}
	return err
}

// isOurs reports whether the service runs messagehub.
func (s *composeService) isOurs() bool { return strings.HasPrefix(s.Image, "messagehub") }

var composeVariable = regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`)

// readCompose returns the services in deploy/compose.yaml, with default values
// for variables.
func readCompose(t *testing.T) map[string]*composeService {
	t.Helper()
	text, err := os.ReadFile("../../deploy/compose.yaml")
	require.NoError(t, err)
	var file struct {
		Services map[string]*composeService `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal(composeVariable.ReplaceAll(text, []byte("$2")), &file))
	require.NotEmpty(t, file.Services)
	return file.Services
}

func TestComposeFile_PublishesOnThisMachineOnly(t *testing.T) {
	published := 0
	for name, s := range readCompose(t) {
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s to other machines", name, port)
			published++
		}
	}
	require.NotZero(t, published)
}

func TestComposeFile_PrometheusScrapesItsServices(t *testing.T) {
	text, err := os.ReadFile("../../deploy/observability/prometheus.yaml")
	require.NoError(t, err)
	var file struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	services := readCompose(t)
	var found []string
	for _, job := range file.ScrapeConfigs {
		for _, c := range job.StaticConfigs {
			for _, target := range c.Targets {
				name, _, _ := strings.Cut(target, ":")
				require.Contains(t, services, name)
				found = append(found, name)
			}
		}
	}
	require.ElementsMatch(t, []string{"hub-a", "hub-b", "servicebus"}, found)
}
