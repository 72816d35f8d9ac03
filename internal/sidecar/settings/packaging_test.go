package settings_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

const packaging = "../../../packaging/"

func packaged(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(packaging + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSampleConfiguration: the sample as it is changes nothing; with every line that is commented out it is valid text,
// has every field, and shows the defaults.
func TestSampleConfiguration(t *testing.T) {
	got, err := settings.Source{File: packaging + "ragpilot.yaml"}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settings.Default(), got); diff != "" {
		t.Errorf("as it is: %s", diff)
	}
	text := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(packaged(t, "ragpilot.yaml"), "$1")
	got, err = settings.Decode([]byte(text), settings.Config{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(got.Keys) != 2 || len(got.Prices) != 1 || len(got.Engines) != 1 || got.TLS.Cert == "" || got.TLS.ClientCA == "" {
		t.Errorf("examples: %v", got)
	}
	complete := got
	complete.Currency = "USD"
	if err := complete.Validate(); err != nil {
		t.Errorf("examples: %v", err)
	}
	got.Keys, got.Prices, got.Engines, got.TLS = nil, nil, nil, settings.TLS{}
	if diff := cmp.Diff(settings.Default(), got); diff != "" {
		t.Errorf("not the defaults: %s", diff)
	}
	allFields(t, reflect.TypeFor[settings.Config](), text)
}

func allFields(t *testing.T, of reflect.Type, text string) {
	t.Helper()
	for f := range of.Fields() {
		name := f.Tag.Get("yaml")
		if name == "" || !regexp.MustCompile(`(?m)^[ -]*`+name+`:`).MatchString(text) {
			t.Errorf("%s.%s (%q) is not in the sample", of, f.Name, name)
		}
		switch {
		case f.Type.Kind() == reflect.Struct:
			allFields(t, f.Type, text)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			allFields(t, f.Type.Elem(), text)
		}
	}
}

// TestUnitLetsAnswersEnd: systemd waits longer than the server does, and reloads it by the signal that it knows.
func TestUnitLetsAnswersEnd(t *testing.T) {
	unit := packaged(t, "ragpilot.service")
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(unit)
	if found == nil {
		t.Fatal("no TimeoutStopSec")
	}
	if stop, err := time.ParseDuration(found[1] + "s"); err != nil || stop <= settings.Default().Timeouts.Drain {
		t.Errorf("TimeoutStopSec %v, drain %v", stop, settings.Default().Timeouts.Drain)
	}
	testkit.Contains(t, "unit", unit, "ExecReload=/bin/kill -HUP $MAINPID", "EnvironmentFile=-", "serve --config /etc/ragpilot/ragpilot.yaml")
	if !strings.Contains(packaged(t, "Containerfile"), "\nUSER 65532:65532\n") {
		t.Error("the container runs as root")
	}
}
