package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

func logged(t *testing.T, pod *corev1.Pod, in plane.LogsIn, reply sdktest.Reply) (*sdktest.Host, sdktest.Result) {
	t.Helper()
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	in.Cluster, in.Namespace, in.Pod = "prod", "web", "shop"
	h := sdktest.New(t, "k8s_pods_logs", in).Items("get", raw).On("logs", func(sdktest.Request) sdktest.Reply { return reply })
	return h, h.Run()
}

func podOf(annotation string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1", InitContainers: []corev1.Container{{Name: "migrate"}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}}}
	if annotation != "" {
		p.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{"kubectl.kubernetes.io/default-container": annotation}}
	}
	for _, name := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
	}
	return p
}

func TestLogsChooseTheContainer(t *testing.T) {
	for _, tt := range []struct {
		name, named string
		pod         *corev1.Pod
		want        string // empty is a 400 that lists them
	}{
		{"the one named", "b", podOf("", "a", "b"), "b"},
		{"the only one, although there are init containers", "", podOf("", "a"), "a"},
		{"the default", "", podOf("b", "a", "b"), "b"},
		{"the one named before the default", "a", podOf("b", "a", "b"), "a"},
		{"an init container", "migrate", podOf("", "a", "b"), "migrate"},
		{"an ephemeral container", "debug", podOf("", "a", "b"), "debug"},
		{"several and no default", "", podOf("", "a", "b"), ""},
		{"a default that is not there", "", podOf("gone", "a", "b"), ""},
		{"a name that is not there", "gone", podOf("", "a", "b"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, r := logged(t, tt.pod, plane.LogsIn{Container: tt.named, TailLines: 7}, sdktest.Reply{Items: [][]byte{[]byte("hi\n")}})
			if tt.want == "" {
				if r.Refusal == nil || r.Refusal.Status != 400 || !strings.Contains(string(r.Refusal.Members["containers"]), `"migrate"`) {
					t.Fatalf("got %+v, want a 400 that lists the containers", r.Refusal)
				}
				return
			}
			if diff := cmp.Diff(plane.Logs{Log: "hi\n"}, sdktest.Rest[plane.Logs](t, r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			asked := h.Requests[1]
			if asked.Container != tt.want || asked.TailLines != 7 || asked.Pod != "shop" {
				t.Errorf("asked for %+v, want container %s", asked, tt.want)
			}
		})
	}
}

func TestLogsOfAContainerThatHasNotStarted(t *testing.T) {
	waiting := podOf("", "a")
	waiting.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: waits("ImagePullBackOff")}}
	unscheduled := podOf("", "a")
	unscheduled.Spec.NodeName = ""
	for _, pod := range []*corev1.Pod{waiting, unscheduled} {
		if _, r := logged(t, pod, plane.LogsIn{}, sdktest.Reply{}); r.Refusal == nil || r.Refusal.Status != 409 || r.Refusal.Code != "not_started" {
			t.Errorf("got %+v, want a 409 not_started", r.Refusal)
		}
	}
	crashing := podOf("", "a")
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", RestartCount: 3, State: waits("CrashLoopBackOff")}}
	if _, r := logged(t, crashing, plane.LogsIn{}, sdktest.Reply{}); r.Refusal != nil {
		t.Errorf("a container that crashed has a log; got %+v", r.Refusal)
	}
}

func TestLogsAreValidAndBounded(t *testing.T) {
	for _, tt := range []struct {
		name      string
		chunks    []string
		truncated string
		want      plane.Logs
	}{
		{"a rune cut by a chunk", []string{"gr\xc3", "\xbc\xc3\x9fe\r\n"}, "false", plane.Logs{Log: "grüße\r\n"}},
		{"not UTF-8", []string{"a\xff\x00\xed\xa0\x80\x1b[31m"}, "false", plane.Logs{Log: "a\uFFFD\x00\uFFFD\uFFFD\uFFFD\x1b[31m"}},
		{"the host dropped some", []string{"end\n"}, "true", plane.Logs{Log: "end\n", Truncated: true}},
		{"nothing", nil, "false", plane.Logs{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reply := sdktest.Reply{Trailer: `{"truncated":` + tt.truncated + `}`}
			for _, c := range tt.chunks {
				reply.Items = append(reply.Items, []byte(c))
			}
			_, r := logged(t, podOf("", "a"), plane.LogsIn{}, reply)
			if diff := cmp.Diff(tt.want, sdktest.Rest[plane.Logs](t, r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("replacement does not pass the limit, and the newest is kept", func(t *testing.T) {
		long := append(bytes.Repeat([]byte{0xff}, mostLog-3), "end"...)
		_, r := logged(t, podOf("", "a"), plane.LogsIn{}, sdktest.Reply{Items: [][]byte{long}})
		got := sdktest.Rest[plane.Logs](t, r)
		if len(got.Log) > mostLog || len(got.Log) < mostLog-4 || !got.Truncated || !utf8.ValidString(got.Log) || !strings.HasSuffix(got.Log, "end") {
			t.Errorf("got %d bytes, truncated %v", len(got.Log), got.Truncated)
		}
	})
}

func TestLogsFailures(t *testing.T) {
	failure := &sdk.Failure{Code: "kubelet_unreachable", Status: 504, Message: "the node does not answer"}
	if _, r := logged(t, podOf("", "a"), plane.LogsIn{}, sdktest.Reply{Items: [][]byte{[]byte("half")}, Failure: failure}); r.Refusal == nil || r.Refusal.Code != failure.Code {
		t.Errorf("got %+v, want the failure", r.Refusal)
	}
	r := sdktest.New(t, "k8s_pods_logs", plane.LogsIn{Namespace: "web", Pod: "gone"}).
		Fails("get", sdk.Failure{Code: "not_found", Status: 404, Reason: "NotFound"}).Run()
	if r.Refusal == nil || r.Refusal.Status != 404 {
		t.Errorf("got %+v, want a 404", r.Refusal)
	}
}
