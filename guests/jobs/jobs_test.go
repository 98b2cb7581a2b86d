package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var rows = difftest.Projection[batchv1.Job, plane.Job]{Token: "k8s_jobs_list", Reference: difftest.Job}

func FuzzJob(f *testing.F) {
	difftest.Fuzz(f, rows, nil, func(j *batchv1.Job, c randfill.Continue) {
		c.FillNoCustom(j)
		for i := range j.Status.Conditions {
			j.Status.Conditions[i].Type = []batchv1.JobConditionType{"Complete", "Failed", "Suspended"}[c.Intn(3)]
			j.Status.Conditions[i].Status = []corev1.ConditionStatus{"True", "False"}[c.Intn(2)]
		}
	})
}

func TestJobPhase(t *testing.T) {
	at := metav1.Unix(100, 0)
	is := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: status, LastTransitionTime: at}
	}
	three := int32(3)
	for _, tt := range []struct {
		name  string
		job   batchv1.Job
		phase string
		ended int
	}{
		{"complete although pods failed", batchv1.Job{Status: batchv1.JobStatus{Failed: 2, CompletionTime: &at, Conditions: []batchv1.JobCondition{is("Complete", "True")}}}, "succeeded", 100},
		{"one of three has succeeded", batchv1.Job{Spec: batchv1.JobSpec{Completions: &three}, Status: batchv1.JobStatus{Succeeded: 1}}, "running", 0},
		{"failed, which has no completion time", batchv1.Job{Status: batchv1.JobStatus{Succeeded: 1, Conditions: []batchv1.JobCondition{is("Failed", "True")}}}, "failed", 100},
		{"FailureTarget is not the end", batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{is("FailureTarget", "True")}}}, "running", 0},
		{"nor is SuccessCriteriaMet", batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{is("SuccessCriteriaMet", "True")}}}, "running", 0},
		{"suspended", batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{is("Suspended", "True")}}}, "running", 0},
		{"a condition that is not true", batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{is("Complete", "False"), is("Failed", "Unknown")}}}, "running", 0},
		{"complete beats failed", batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{is("Failed", "True"), is("Complete", "True")}}}, "succeeded", 0},
		{"a work queue, being deleted", batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &at}, Status: batchv1.JobStatus{Active: 2}}, "running", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := difftest.Same(t, rows, &tt.job)
			if row.Phase != tt.phase || row.EndedAt != tt.ended {
				t.Errorf("got %s, ended at %d; want %s and %d", row.Phase, row.EndedAt, tt.phase, tt.ended)
			}
		})
	}
}

func TestCreateJob(t *testing.T) {
	made := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "import"}}
	raw, err := made.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	h := sdktest.New(t, "k8s_jobs_create", plane.CreateJobIn{
		Cluster: "prod", Namespace: "jobs", Name: "import", Image: "import:1", Command: []string{"/import"}, Args: []string{"--since", ""},
		Env: plane.Map{{Key: "B", Value: "2"}, {Key: "A", Value: ""}}, ServiceAccount: "importer",
		Labels: plane.Map{{Key: "team", Value: "shop"}, {Key: "managed-by", Value: "me"}}, TtlSeconds: 60,
		Mounts: []plane.Mount{{Claim: "inbox", Path: "/inbox"}, {Claim: "inbox", Path: "/again"}},
	}).Items("create", raw)
	if diff := cmp.Diff(plane.Job{Namespace: "jobs", Name: "import", Phase: "running"}, sdktest.Rest[plane.Job](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got batchv1.Job
	if err := json.Unmarshal(h.Requests[0].Object, &got); err != nil {
		t.Fatal(err)
	}
	none, ttl, no := int32(0), int32(60), false
	labels := map[string]string{"team": "shop", "managed-by": "hanzo-cloud"}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "inbox"}}
	want := batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "import", Labels: labels},
		Spec: batchv1.JobSpec{BackoffLimit: &none, TTLSecondsAfterFinished: &ttl, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{RestartPolicy: "Never", ServiceAccountName: "importer",
				Volumes: []corev1.Volume{{Name: "mount-0", VolumeSource: claim}, {Name: "mount-1", VolumeSource: claim}},
				Containers: []corev1.Container{{Name: "job", Image: "import:1", Command: []string{"/import"}, Args: []string{"--since", ""},
					Env:             []corev1.EnvVar{{Name: "A"}, {Name: "B", Value: "2"}},
					VolumeMounts:    []corev1.VolumeMount{{Name: "mount-0", MountPath: "/inbox"}, {Name: "mount-1", MountPath: "/again"}},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no}}}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the job made (-want +got):\n%s", diff)
	}
}

func TestCreateJobRefuses(t *testing.T) {
	in := plane.CreateJobIn{Namespace: "jobs", Name: "import", Image: "import:1", Mounts: []plane.Mount{{Claim: "inbox", Path: "inbox"}}}
	if r := sdktest.New(t, "k8s_jobs_create", in).Run(); r.Refusal == nil || r.Refusal.Status != 400 {
		t.Errorf("a path that is not absolute: got %+v, want a 400", r.Refusal)
	}
	in.Mounts = nil
	r := sdktest.New(t, "k8s_jobs_create", in).Fails("create", sdk.Failure{Code: "already_exists", Status: 409, Reason: "AlreadyExists"}).Run()
	if r.Refusal == nil || r.Refusal.Status != 409 || r.Refusal.Code != "already_exists" {
		t.Errorf("a name that is taken: got %+v, want a 409", r.Refusal)
	}
}

func TestGetJob(t *testing.T) {
	r := sdktest.New(t, "k8s_jobs_get", plane.JobIn{Namespace: "jobs", Name: "gone"}).
		Fails("get", sdk.Failure{Code: "not_found", Status: 404, Reason: "NotFound"}).Run()
	if r.Refusal == nil || r.Refusal.Status != 404 {
		t.Errorf("got %+v, want a 404", r.Refusal)
	}
}
