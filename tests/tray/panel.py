"""A panel for tests: it watches for tray icons on a session bus and uses their menus."""

# Annotations of services are signatures of D-Bus.
# ruff: noqa: N802, UP037, F821, F722
# mypy: disable-error-code="name-defined,valid-type,syntax,no-untyped-def"

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from dbus_fast import Message, MessageType, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_property, method, signal

from tests.waiting import PATIENCE_S

ITEM_PATH, ITEM = "/StatusNotifierItem", "org.kde.StatusNotifierItem"


class MenuItem(NamedTuple):
    """An entry of a menu, as a panel gets it."""

    id: int
    label: str
    is_enabled: bool


class Watcher(ServiceInterface):
    """The service with which tray icons register."""

    def __init__(self) -> None:
        super().__init__("org.kde.StatusNotifierWatcher")
        self.items: list[str] = []

    @method()
    def RegisterStatusNotifierItem(self, service: "s"):
        self.items.append(service)
        self.StatusNotifierItemRegistered(service)

    @method()
    def RegisterStatusNotifierHost(self, service: "s"):
        pass

    @signal()
    def StatusNotifierItemRegistered(self, service) -> "s":
        return service

    @dbus_property(access=PropertyAccess.READ)
    def RegisteredStatusNotifierItems(self) -> "as":
        return self.items

    @dbus_property(access=PropertyAccess.READ)
    def IsStatusNotifierHostRegistered(self) -> "b":
        return True

    @dbus_property(access=PropertyAccess.READ)
    def ProtocolVersion(self) -> "i":
        return 0


class Notifications(ServiceInterface):
    """The service that shows notifications; this one collects their texts."""

    def __init__(self) -> None:
        super().__init__("org.freedesktop.Notifications")
        self.texts: list[str] = []

    @method()
    def GetCapabilities(self) -> "as":
        return ["body"]

    @method()
    def GetServerInformation(self) -> "ssss":
        return ["panel", "tests", "1", "1.2"]

    @method()
    def CloseNotification(self, number: "u"):
        pass

    @method()
    def Notify(
        self,
        app: "s",
        replaces: "u",
        icon: "s",
        title: "s",
        body: "s",
        actions: "as",
        hints: "a{sv}",
        timeout: "i",
    ) -> "u":
        self.texts.append(f"{title}\n{body}")
        return len(self.texts)


class Panel:
    """The panel of a desktop session, with its notifications."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self.watcher, self.notifications = Watcher(), Notifications()

    async def find_item(self) -> str:
        """Wait for an icon, and return the name of its service."""
        await self.eventually(lambda: self.watcher.items)
        return self.watcher.items[0]

    async def picture(self) -> bytes:
        """Return the largest picture of the icon."""
        pictures = await self._property("IconPixmap")
        return max(pictures)[2] if pictures else b""

    async def menu(self) -> list[MenuItem]:
        """Return the entries of the menu, without separators."""
        path = await self._property("Menu")
        layout = await self._call(path, "com.canonical.dbusmenu", "GetLayout", "iias", [0, -1, []])
        items = [one.value for one in layout[1][2]]
        return [
            MenuItem(id_, fields["label"].value, fields.get("enabled", Variant("b", True)).value)
            for id_, fields, _ in items
            if "label" in fields
        ]

    async def choose(self, label: str) -> None:
        """Click on an entry of the menu."""
        item = await self.eventually(lambda: self._find(label))
        body = [item.id, "clicked", Variant("i", 0), 0]
        path = await self._property("Menu")
        await self._call(path, "com.canonical.dbusmenu", "Event", "isvu", body)

    async def _find(self, label: str) -> MenuItem | None:
        items = [one for one in await self.menu() if one.label == label and one.is_enabled]
        return items[0] if items else None

    async def _property(self, name: str) -> Any:
        body = [ITEM, name]
        (value,) = await self._call(ITEM_PATH, "org.freedesktop.DBus.Properties", "Get", "ss", body)
        return value.value

    async def _call(self, path: str, interface: str, member: str, signature: str, body: Any) -> Any:
        message = Message(
            destination=self.watcher.items[0],
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=body,
        )
        reply = await self._bus.call(message)
        assert reply is not None
        assert reply.message_type == MessageType.METHOD_RETURN, reply.body
        return reply.body

    async def eventually(self, what: Callable[[], object]) -> Any:
        """Ask again and again until the answer is true, and return it."""
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = what()
            value = await answer if isinstance(answer, Awaitable) else answer
            if value:
                return value
            assert time.monotonic() < until, "it did not come to pass"
            await asyncio.sleep(0.05)


@asynccontextmanager
async def open_panel(address: str) -> AsyncIterator[Panel]:
    """Serve a panel on a bus."""
    bus = await MessageBus(bus_address=address).connect()
    panel = Panel(bus)
    bus.export("/StatusNotifierWatcher", panel.watcher)
    bus.export("/org/freedesktop/Notifications", panel.notifications)
    await bus.request_name("org.freedesktop.Notifications")
    await bus.request_name("org.kde.StatusNotifierWatcher")
    try:
        yield panel
    finally:
        bus.disconnect()
