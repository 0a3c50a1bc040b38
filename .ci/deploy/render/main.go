// Command render prints the objects that the Helm chart renders with values, as helm template does, or the
// configuration file of the hub alone:
//
//	go -C .ci/deploy run ./render -values ../../deploy/helm/messagehub/ci/azure-values.yaml
//	go -C .ci/deploy run ./render -values FILE -values FILE -settings
//
// It is for machines without helm. The values of later files override those of earlier files.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/messagehub/messagehub/.ci/deploy/chart"
)

func main() {
	var files []string
	folder := flag.String("chart", "../../deploy/helm/messagehub", "`FOLDER` with the chart")
	release := flag.String("release", "messagehub", "`NAME` of the release")
	namespace := flag.String("namespace", "default", "`NAME` of the namespace")
	onlySettings := flag.Bool("settings", false, "print the configuration file of the hub alone")
	flag.Func("values", "`FILE` with values; may be repeated", func(file string) error {
		files = append(files, file)
		return nil
	})
	flag.Parse()
	if err := renderChart(os.Stdout, *folder, *release, *namespace, files, *onlySettings); err != nil {
		fmt.Fprintf(os.Stderr, "render the chart: %v\n", err)
		os.Exit(1)
	}
}

func renderChart(w io.Writer, folder, release, namespace string, files []string, onlySettings bool) error {
	c, err := loader.Load(folder)
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, file := range files {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		values = chartutil.MergeTables(more, values)
	}
	documents, _, err := chart.Render(c, values, release, namespace)
	if err != nil {
		return err
	}
	if onlySettings {
		return printSettings(w, documents)
	}
	for _, d := range documents {
		if _, err := fmt.Fprintf(w, "---\n# %s\n%s\n", d.Template, d.Text); err != nil {
			return err
		}
	}
	return nil
}

// printSettings prints the configuration file of the hub.
func printSettings(w io.Writer, documents []chart.Document) error {
	i := slices.IndexFunc(documents, func(d chart.Document) bool { return d.Template == "configmap.yaml" })
	if i < 0 {
		return fmt.Errorf("the chart makes no configmap.yaml; see its folder templates")
	}
	var config core.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(documents[i].Text), &config); err != nil {
		return err
	}
	_, err := io.WriteString(w, config.Data["messagehub.yaml"])
	return err
}
