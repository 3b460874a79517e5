"""Buttons of the console that call a service: asked first, done by POST, answered with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from permissions.admin_base import ADMINS, TenantAdmin, organizations
from permissions.models import Membership, Organization

Text = str | Promise
_WIDGETS: tuple[tuple[type[forms.Field], type[forms.Widget]], ...] = (
    (forms.SplitDateTimeField, widgets.UnfoldAdminSplitDateTimeWidget),
    (forms.DateField, widgets.UnfoldAdminSingleDateWidget),
    (forms.TimeField, widgets.UnfoldAdminSingleTimeWidget),
    (forms.MultipleChoiceField, widgets.UnfoldAdminCheckboxSelectMultipleWidget),
    (forms.ModelChoiceField, widgets.UnfoldAdminSelectWidget),
    (forms.ChoiceField, widgets.UnfoldAdminSelectWidget),
    (forms.IntegerField, widgets.UnfoldAdminIntegerFieldWidget),
    (forms.CharField, widgets.UnfoldAdminTextInputWidget),
)


class ConsoleForm(forms.Form):
    """A form that knows who fills it in, and about what; its fields wear Unfold's widgets."""

    # Each role in which the person may fill it in; choices are cut to these.
    roles: ClassVar[Collection[str]] = ADMINS

    def __init__(self, *args: Any, request: HttpRequest, obj: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.request = request
        self.obj = obj
        for field in self.fields.values():
            field.label = capfirst(str(field.label or ""))
            _dress(field)


def _dress(field: forms.Field) -> None:
    for kind, widget in _WIDGETS:
        if isinstance(field, kind):
            dressed = widget()
            if isinstance(field, forms.ChoiceField):
                dressed.choices = field.choices  # type: ignore[attr-defined]
            dressed.is_required = field.required
            dressed.attrs.update(field.widget_attrs(dressed))
            field.widget = dressed
            return


class OrganizationForm(ConsoleForm):
    """Asks for the organization where the person has several, and knows it where he has one."""

    organization = forms.ModelChoiceField(Organization.objects.none(), label=_("organization"), empty_label=None)
    # The field, if any, that names a person of that organization.
    person_field: ClassVar[str] = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        mine = organizations(self.request, self.roles)
        field = self.fields["organization"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = mine
        first_two = list(mine[:2])
        if len(first_two) == 1:
            field.initial = first_two[0].pk
            field.widget = forms.HiddenInput()

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        organization, person = data.get("organization"), data.get(self.person_field)
        if organization is not None and person is not None:
            place = Membership.objects.of(organization).filter(user=person, is_active=True)
            if not place.exists():
                self.add_error(self.person_field, _("This person is no active member of the organization."))
        return data


class Refused(Exception):
    """The service said no; the text is for the person."""


@contextmanager
def refusing(words: Mapping[type[Exception], Text]) -> Iterator[None]:
    """Turn a room's own errors into Refused, with the words for each."""
    try:
        yield
    except tuple(words) as error:
        text = next(words[kind] for kind in type(error).__mro__ if kind in words)
        raise Refused(str(text)) from error


@dataclass(frozen=True, slots=True)
class Step:
    """One button: ``question`` is shown with ``form``, and a POST hands its data to ``run``.

    ``run(request, obj, data)`` calls one service and returns the sentence to show, or a response of its own;
    it raises Refused or ValidationError where the service refuses.
    """

    name: str
    label: Text
    run: Callable[[HttpRequest, Any, dict[str, Any]], Text | HttpResponse]
    question: Callable[[Any], Text]
    form: type[ConsoleForm] = ConsoleForm
    roles: Collection[str] = ADMINS
    super_admins_only: bool = False
    offered: Callable[[Any], bool] = lambda _obj: True
    icon: str = ""
    variant: str = "default"


class StepAdmin(TenantAdmin):
    """A tenant's rows with steps, and an addition that goes through a service."""

    steps: ClassVar[tuple[Step, ...]] = ()
    add_form: ClassVar[type[ConsoleForm] | None] = None
    add_title: ClassVar[Text] = ""
    add_hint: ClassVar[Text] = ""
    change_form_outer_before_template = "console/steps.html"

    def add(self, request: HttpRequest, data: dict[str, Any]) -> Any:
        """Call the service that makes the row; the row, or a response of its own."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.add_form is not None and self.holds(request, None, self.act)

    def get_urls(self) -> list[URLPattern]:
        info = self.opts.app_label, self.opts.model_name
        mine = [
            path(
                f"<path:object_id>/{step.name}/",
                self.admin_site.admin_view(partial(self.step_view, step=step)),
                name=f"{info[0]}_{info[1]}_{step.name}",
            )
            for step in self.steps
        ]
        return [*mine, *super().get_urls()]

    def may(self, request: HttpRequest, step: Step, obj: Any) -> bool:
        """Whether the person has the role for the step where the object belongs."""
        if step.super_admins_only and not request.user.is_superuser:
            return False
        return self.holds(request, obj, step.roles)

    def buttons(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        """The steps that the person may take with the object now."""
        return [
            {"label": step.label, "icon": step.icon, "variant": step.variant, "url": self.step_url(step.name, obj)}
            for step in self.steps
            if self.may(request, step, obj) and step.offered(obj)
        ]

    def step_url(self, name: str, obj: Any) -> str:
        return self.url_of(name, obj.pk)

    def url_of(self, page: str, *args: Any) -> str:
        """The address of one of this model's pages."""
        return reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{page}", args=args)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        # Here, where the object has been read already.
        if obj is not None:
            extra = {"buttons": self.buttons(request, obj), **self.page_context(request, obj)}
            context = {**context, **{name: value for name, value in extra.items() if name not in context}}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the templates of the object's page need beside its fields."""
        return {}

    def found(self, request: HttpRequest, object_id: str) -> Any:
        """The object, or the answer that Django gives where there is none (of the person's)."""
        obj = self.get_object(request, object_id)
        if obj is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
                request, self.opts, object_id
            )
        return obj

    def step_view(self, request: HttpRequest, object_id: str, *, step: Step) -> HttpResponseBase:
        """GET asks, POST does."""
        obj = self.found(request, object_id)
        if isinstance(obj, HttpResponse):
            return obj
        if not self.may(request, step, obj):
            raise PermissionDenied
        back = self.url_of("change", obj.pk)
        if not step.offered(obj):
            messages.warning(request, _("This is no longer possible: the state has changed meanwhile."))
            return HttpResponseRedirect(back)
        form = step.form(request.POST if request.method == "POST" else None, request=request, obj=obj)
        if form.is_valid():
            answer = _tried(form, partial(step.run, request, obj, form.cleaned_data))
            if isinstance(answer, HttpResponseBase):
                return answer
            if answer is not None:
                messages.success(request, str(answer))
                return HttpResponseRedirect(back)
        return self.ask(request, form, str(step.label), str(step.question(obj)), back, subtitle=str(obj), step=step)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if self.add_form is None or not self.has_add_permission(request):
            raise PermissionDenied
        back = self.url_of("changelist")
        form = self.add_form(request.POST if request.method == "POST" else None, request=request)
        if form.is_valid():
            made = _tried(form, partial(self.add, request, form.cleaned_data))
            if isinstance(made, HttpResponse):
                return made
            if made is not None:
                messages.success(request, str(_("Saved: %(name)s.") % {"name": made}))
                return HttpResponseRedirect(self.url_of("change", made.pk))
        return self.ask(request, form, str(self.add_title), str(self.add_hint), back)

    def ask(
        self,
        request: HttpRequest,
        form: ConsoleForm,
        title: str,
        question: str,
        back: str,
        **extra: Any,
    ) -> TemplateResponse:
        """The page with a question, a form and two ways out."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "question": question,
            "form": form,
            "media": self.media + form.media,
            "back": back,
            **extra,
        }
        return TemplateResponse(request, "console/ask.html", context)


def _tried(form: ConsoleForm, call: Callable[[], Any]) -> Any:
    """What the service answers; None where it refused, which the form then says."""
    try:
        return call()
    except Refused as refusal:
        form.add_error(None, str(refusal))
    except ValidationError as refusal:
        _add_all(form, refusal)
    return None


def _add_all(form: ConsoleForm, refusal: ValidationError) -> None:
    """A service may name a column that the form does not ask for: its text is then said of the whole."""
    if not hasattr(refusal, "error_dict"):
        form.add_error(None, refusal)
        return
    for name, errors in refusal.error_dict.items():
        form.add_error(name if name in form.fields else None, errors)
